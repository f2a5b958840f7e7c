"""stuck-consumer (B02): consumers hold messages and acknowledge none for longer than their handling takes.

A single active consumer that is stuck while standbys wait has a rule of its own, sac-stuck, because the fix differs.
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers._shared.stalled_consumers import stalls
from diagnosis.rules.consumers._shared.stuck_finding import stuck_findings

NAME = "stuck-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Report every queue that is stuck as a whole or in part."""
    yield from stuck_findings(NAME, (stall for stall in stalls(view) if not stall.standbys))
