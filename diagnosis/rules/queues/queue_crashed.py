"""queue-crashed (C12): the process of a queue crashed so often that the broker no longer restarts it.

Seen on 3.10, 4.0 and 4.3: `state` is `crashed`, and its other values keep their last state.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

NAME = "queue-crashed"

CRASHED = "crashed"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue by its state."""
    for queue in view.all_queues:
        if queue.state == CRASHED:
            # Between two restarts by the broker a queue is crashed only briefly.
            run = stretch(view.history(queue), _both_crashed)
            yield _finding(queue, span(run), run[0].at.iso(), view.limits(queue).queues.crashed_for)


def _both_crashed(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return older.value.state == CRASHED and newer.value.state == CRASHED


def _finding(queue: Queue, seconds: float, since: str, critical_after: float) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if seconds >= critical_after else Severity.WARNING,
        subject=queue_subject(queue),
        since=since,
        facts={
            "queue": queue_facts(queue),
            "messages": queue.messages,
            "for_seconds": seconds,
            "critical_after_seconds": critical_after,
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=(
            Evidence(key="state", value=CRASHED, source=source("/api/queues", "state")),
            Evidence(key="node", value=queue.node, source=source("/api/queues", "node")),
        ),
        involved=involved_queue(queue),
    )
