"""stuck-consumer (B02): consumers hold all that they may hold, and acknowledge nothing.

How they are told from all that looks like them is in `standstill`; a single active consumer that is stuck while
others stand by has a rule of its own, for the remedy is another.
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers.standstill import holds
from diagnosis.rules.consumers.stuck_report import report

NAME = "stuck-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Tell of every queue that stands still, or is served in part."""
    for hold in holds(view):
        if not hold.standby:
            yield report(NAME, hold)
