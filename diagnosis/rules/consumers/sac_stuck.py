"""sac-stuck (B13): the single active consumer of a queue is stuck, and its standbys get no messages.

The broker makes another consumer active only when the active one ends: it is cancelled, or its channel or connection
closes. Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer

If a standby has a higher priority, the active one ends when it has settled all its messages. Until then it gets no more
(`handover`).
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers._shared.handover import handovers
from diagnosis.rules.consumers._shared.stalled_consumers import stalls
from diagnosis.rules.consumers._shared.stuck_finding import stuck_findings
from diagnosis.rules.consumers._shared.unlisted_consumers import unlisted_stalls

NAME = "sac-stuck"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Report every queue whose active consumer is stuck while others stand by."""
    hidden = unlisted_stalls(view) if view.lists_no_clients else ()
    found = (stall for stall in (*stalls(view), *hidden) if stall.standbys)
    yield from stuck_findings(view, NAME, (*found, *handovers(view)))
