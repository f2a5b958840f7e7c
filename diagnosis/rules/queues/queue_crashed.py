"""queue-crashed (C12): the process of a queue died so often that the broker gave it up.

Seen on 3.10, 4.0 and 4.3: `state` is `crashed`, and its figures stay as they were last.
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues.telling import about
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import lasting, place

NAME = "queue-crashed"

CRASHED = "crashed"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue by its state."""
    for queue in view.all_queues:
        if queue.state == CRASHED:
            # Between two attempts of the broker to start it again it is crashed for a moment only.
            lately = stretch(view.history(queue), _both)
            yield _finding(queue, span(lately), lately[0].at.iso(), view.thresholds.early)


def _both(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return older.value.state == CRASHED and newer.value.state == CRASHED


def _finding(queue: Queue, seconds: float, since: str, early: float) -> FindingReport:
    held = "" if queue.messages is None else f"; it held {queue.messages} messages when it was last heard of"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if seconds >= early else Severity.WARNING,
        subject=about(queue),
        since=since,
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) has crashed: nobody can publish to it or consume from it{held}; "
            f"seen for {lasting(seconds)}"
        ),
        cause=(
            "Its process ended with an error again and again, and the broker stopped to start it; "
            f"the log of node {queue.node or 'that holds it'} has the error."
        ),
        evidence=(
            EvidenceReport(what="state", value=CRASHED, expected="running", source="/api/queues state"),
            EvidenceReport(what="node", value=queue.node or "unknown", source="/api/queues node"),
        ),
        next_steps=(
            (
                f"read the error first, in the log of {queue.node or 'its node'}, by the queue's name; "
                "keep the log, it is a defect of the broker or damage on its disk"
            ),
            (
                "start it again, with all queues of its virtual host (connections to that vhost close): "
                f"rabbitmqctl restart_vhost -p {quote(queue.vhost)}"
            ),
            (
                "if it crashes again, and its messages may be lost: "
                f"rabbitmqctl delete_queue {place(queue)}   # then declare it anew"
            ),
            "publish again what was nacked meanwhile",
        ),
        runbook=runbook(NAME),
    )
