"""stuck-consumer (B02): consumers hold all that they may hold, and acknowledge nothing.

How they are told from all that looks like them is in `standstill`; a single active consumer that is stuck while
others stand by has a rule of its own, for the remedy is another.
"""

from collections.abc import Iterator

from diagnosis.contract import Explains, Impact, Rule, RuleResult, View
from diagnosis.relations import SAME_SUBJECT
from diagnosis.rules.consumers.follows import BACKLOG
from diagnosis.rules.consumers.standstill import holds
from diagnosis.rules.consumers.stuck_report import report


def evaluate(view: View) -> Iterator[RuleResult]:
    """Tell of every queue that stands still, or is served in part."""
    for hold in holds(view):
        if not hold.standby:
            yield report(RULE.name, hold)


RULE = Rule(
    name="stuck-consumer",
    title="consumers hold messages and acknowledge none",
    impact=Impact.OUTAGE,
    needs=("overview", "queues", "consumers", "channels"),
    counts=True,
    evaluate=evaluate,
    explains=(BACKLOG, Explains(("consumer-ack-timeout",), SAME_SUBJECT)),
)
