"""pub-unroutable-dropped (A01): messages find no queue, and the broker confirms and drops them.

The sender believes that it succeeded. Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.unroutable import DROPPED
from diagnosis.rules.publishers.unroutable_report import Kind, answers

_KIND = Kind(
    rule="pub-unroutable-dropped",
    counter=DROPPED,
    fate="dropped",
    meaning="The publisher does not set mandatory, so the broker drops such messages, and confirms them all the same.",
    worst=Severity.CRITICAL,
    step="let the publisher set mandatory and handle basic.return; publish again what was dropped since then",
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each exchange whose messages are dropped."""
    yield from answers(view, _KIND)
