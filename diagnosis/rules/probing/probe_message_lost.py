"""probe-message-lost (H04): a message of the probes delivery or streaming was confirmed and never delivered.

Either the broker lost it, or something took it from the probe's own queue: another consumer, a policy, a purge. From a
stream no consumer takes anything.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, source
from ackscope.records import Outcome, ProbeOutcome
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.probing._shared.outcomes import probe_subject, recent, stream_name

NAME = "probe-message-lost"

LIMITS = ("message-ttl", "max-length", "max-length-bytes", "max-age", "expires")
"""Keys of a policy that can make messages disappear."""

_STREAM = "stream"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream that misses messages now."""
    for outcome in recent(view, "delivery", "streaming"):
        # The count starts with the probe; the last minute must have contributed to it.
        if outcome.missing and not outcome.success:
            yield _finding(view, outcome, outcome.missing)


def _finding(view: View, outcome: ProbeOutcome, missing: int) -> Finding:
    queue = next((q for q in view.every_queue if q.key == (outcome.vhost, outcome.queue)), None)
    disturbance = _disturbance(queue)
    probe = f"probe {stream_name(outcome)}"
    evidence = [Evidence(key="missing", value=missing, source=source(probe, "missing"))]
    # The number of messages in a stream tells nothing: they stay.
    if queue is not None and queue.type != _STREAM:
        evidence.append(
            Evidence(key="probe_queue", source=source("/api/queues", "consumers", "messages_ready", "policy"))
        )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if disturbance else Severity.CRITICAL,
        subject=probe_subject(outcome),
        facts={
            "stream": stream_name(outcome),
            "missing": missing,
            "acked": outcome.outcomes.get(Outcome.ACKED.value, 0),
            "queue_name": outcome.queue,
            "is_stream": outcome.queue_type == _STREAM,
            "queue": None if queue is None else {**queue_facts(queue), **_state(queue)},
            "disturbance": disturbance,
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
        involved=Involved(queues=(QueueRef(outcome.vhost, outcome.queue),)),
    )


def _state(queue: Queue) -> dict[str, Fact]:
    return {"consumers": queue.consumers, "ready": queue.messages_ready}


def _disturbance(queue: Queue | None) -> dict[str, Fact] | None:
    """Return what takes messages from the probe's queue: `{"consumers"}` or `{"policy", "limits"}`, else None."""
    if queue is None:
        return None
    if queue.type != _STREAM and (queue.consumers or 0) > 1:
        return {"consumers": (queue.consumers or 0) - 1}
    limits = [f"{key} {queue.effective_policy[key]}" for key in LIMITS if queue.effective_policy.get(key) is not None]
    return {"policy": queue.policy, "limits": limits} if limits else None
