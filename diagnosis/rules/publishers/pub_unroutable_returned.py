"""pub-unroutable-returned (A02): messages reach no queue, and the broker returns them to their publisher.

They are lost only where the application ignores basic.return.
Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.lossy_exchanges import RETURNED
from diagnosis.rules.publishers._shared.unroutable import evaluate_unroutable

NAME = "pub-unroutable-returned"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each exchange whose messages are returned."""
    yield from evaluate_unroutable(view, NAME, RETURNED, worst=Severity.WARNING)
