"""pub-unroutable-dropped (A01): messages reach no queue, and the broker confirms and drops them.

The publisher believes that it succeeded. Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED
from diagnosis.rules.publishers._shared.unroutable import evaluate_unroutable

NAME = "pub-unroutable-dropped"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each exchange whose messages are dropped."""
    yield from evaluate_unroutable(view, NAME, DROPPED, worst=Severity.CRITICAL)
