"""pub-unroutable-returned (A02): messages find no queue, and the broker gives them back to their sender.

It is a loss only where the application ignores basic.return. Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.unroutable import RETURNED
from diagnosis.rules.publishers.unroutable_report import Kind, answers

_KIND = Kind(
    rule="pub-unroutable-returned",
    counter=RETURNED,
    fate="returned",
    meaning="The publisher sets mandatory, so each comes back to it (basic.return, 312 NO_ROUTE), then a confirm.",
    worst=Severity.WARNING,
    step="see in the publisher's log that it handles basic.return: what it ignores is lost",
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each exchange whose messages come back."""
    yield from answers(view, _KIND)
