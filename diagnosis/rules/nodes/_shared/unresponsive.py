"""Evidence for when the management API does not answer: how requests failed, and what probes see."""

from collections.abc import Iterable

from ackscope.failures import FailurePhrase, contains
from ackscope.findings import Evidence, source
from ackscope.records import ProbeOutcome, ProbeState
from diagnosis.rules.probing._shared.outcomes import stream_name
from diagnosis.view import View

VITAL = ("overview", "nodes", "health")
"""Families that are read in every poll, each over a connection of its own."""

_OLD_CHECKS = 15.0
"""Seconds: health checks that are older have failed, or hang."""

_UNANSWERED_READING = (FailurePhrase.NO_FULL_ANSWER, FailurePhrase.NO_ANSWER)
_UNANSWERED_PROBE = (
    FailurePhrase.NO_ANSWER_IN_TIME,
    FailurePhrase.SILENT_AFTER_CONNECT,
    FailurePhrase.NO_ANSWER,
    FailurePhrase.NO_HEARTBEAT,
)

_IN_ROUNDS = ("handshake", "outcomes", "prefetch", "redelivery")
"""Probes that do nothing between two rounds: their last success may be older than the end of the node."""

_PATHS = {"health": "/api/health/checks/alarms"}


def errors(view: View, families: Iterable[str] = VITAL) -> dict[str, str]:
    """Return why each family could not be read now; readable families are left out."""
    return {name: error for name in families if (error := view.error(name))}


def api_is_silent(view: View) -> bool:
    """Return whether nothing at all could be read from the broker now.

    Health checks are requested one after another. If a node hangs during them, they are old for a long time before they
    fail.
    """
    failed = errors(view)
    checks_failed = "health" in failed or (view.age("health") or 0.0) >= _OLD_CHECKS
    return "overview" in failed and "nodes" in failed and checks_failed


def is_unanswered_reading(error: str | None) -> bool:
    """Whether the node accepted the request and did not answer."""
    return contains(error, *_UNANSWERED_READING)


def is_refused(reason: str | None) -> bool:
    """Return whether the host replied that nothing listens on the port."""
    return contains(reason, FailurePhrase.REFUSED)


def _has_no_answer(reason: str | None) -> bool:
    return contains(reason, *_UNANSWERED_PROBE)


def is_unanswered(outcome: ProbeOutcome) -> bool:
    """Whether a probe got no answer from an AMQP port that accepts connections."""
    if outcome.probe == "handshake":
        tcp, opened = outcome.steps.get("tcp"), outcome.steps.get("open")
        reached = tcp is not None and tcp.reason is None
        return reached and opened is not None and _has_no_answer(opened.reason)
    if outcome.state is ProbeState.FAILED:
        return _has_no_answer(outcome.reason)
    return any(_has_no_answer(step.reason) for step in outcome.steps.values())


def is_connection_refused(outcome: ProbeOutcome) -> bool:
    """Whether a probe's connection was refused just now."""
    tcp = outcome.steps.get("tcp")
    if tcp is not None:
        return is_refused(tcp.reason)
    return outcome.state is ProbeState.FAILED and is_refused(outcome.reason)


def is_served(outcome: ProbeOutcome) -> bool:
    """Return whether a probe is served all the time over an open connection."""
    running = outcome.state is ProbeState.RUNNING and outcome.success
    return outcome.probe not in _IN_ROUNDS and running and not is_unanswered(outcome)


def is_single_node(view: View) -> bool:
    """Return whether the cluster had one node when its nodes were last read, or an unknown number."""
    latest = view.window.latest
    return latest is None or len(latest.nodes.value or ()) <= 1


def polled_node(view: View) -> str | None:
    """Return the node that answered the last poll, or the only node; None if unknown."""
    latest = view.window.latest
    overview = latest.overview.value if latest else None
    nodes = (latest.nodes.value if latest else None) or ()
    if overview is not None and overview.node:
        return overview.node
    return nodes[0].name if len(nodes) == 1 else None


def api_evidence(view: View, families: Iterable[str] = VITAL) -> list[Evidence]:
    """Return how the latest requests failed: one evidence per family, or one for the Prometheus endpoints alone."""
    failed = errors(view, families)
    if view.reads_only_metrics:
        one = {"family": "metrics"}
        return [
            Evidence(key="api_error", value=error, source=source("/metrics"), facts=one)
            for error in sorted(set(failed.values()))
        ]
    return [
        Evidence(key="api_error", value=error, source=source(_PATHS.get(name, f"/api/{name}")), facts={"family": name})
        for name, error in failed.items()
    ]


def probe_evidence(outcomes: Iterable[ProbeOutcome]) -> list[Evidence]:
    """Return what the first three probe streams saw last, one evidence per stream."""
    found = []
    for outcome in list(outcomes)[:3]:
        steps = [f"{name}: {step.reason}" for name, step in outcome.steps.items() if step.reason]
        found.append(
            Evidence(
                key="probe_state",
                value=outcome.reason or "; ".join(steps) or ("served" if is_served(outcome) else outcome.state.value),
                source=source(f"probe {stream_name(outcome)}"),
                facts={"stream": stream_name(outcome)},
            )
        )
    return found
