"""What is left to judge by when the management API says nothing: how it failed, and what probes live through."""

from collections.abc import Iterable

from ackscope.records import ProbeOutcome, ProbeState
from ackscope.reports import EvidenceReport
from diagnosis.view import View

VITAL = ("overview", "nodes", "health")
"""What is asked in every round, each on a connection of its own."""
_OLD = 15.0
_MUTE = ("no full answer within", "no answer within", "no answer lately")
_REFUSED = "connection refused"
_NO_ANSWER = ("no answer in time", "says nothing", "no answer within", "no heartbeat")
"""The words of our own readers and probes, in their reasons."""


def errors(view: View, families: Iterable[str] = VITAL) -> dict[str, str]:
    """Why parts could not be read just now, by name; those that could are left out."""
    return {name: error for name in families if (error := view.error(name))}


def is_silent(view: View) -> bool:
    """Whether nothing at all was read of the broker just now.

    Health checks are asked one after the other: with a node that hangs in the midst of them it takes long until they
    have failed, and until then they are merely old.
    """
    failed = errors(view)
    return "overview" in failed and "nodes" in failed and ("health" in failed or (view.age("health") or 0.0) >= _OLD)


def is_mute(error: str) -> bool:
    """Whether the node took the request and did not answer."""
    return any(words in error for words in _MUTE)


def is_refused(reason: str | None) -> bool:
    """Whether the host answered that nobody listens there."""
    return _REFUSED in (reason or "")


def _has_no_answer(reason: str | None) -> bool:
    return any(words in (reason or "") for words in _NO_ANSWER)


def is_unanswered(outcome: ProbeOutcome) -> bool:
    """Whether a probe got no answer from an AMQP port just now, and not for want of a listener."""
    if outcome.probe == "handshake":
        tcp, opened = outcome.steps.get("tcp"), outcome.steps.get("open")
        reached = tcp is not None and tcp.reason is None
        return reached and opened is not None and _has_no_answer(opened.reason)
    if outcome.state is ProbeState.FAILED:
        return _has_no_answer(outcome.reason)
    return any(_has_no_answer(step.reason) for step in outcome.steps.values())


def is_turned_away(outcome: ProbeOutcome) -> bool:
    """Whether a probe's connection was refused just now."""
    tcp = outcome.steps.get("tcp")
    if tcp is not None:
        return is_refused(tcp.reason)
    return outcome.state is ProbeState.FAILED and is_refused(outcome.reason)


def is_well(outcome: ProbeOutcome) -> bool:
    """Whether a probe is served over a connection that it has."""
    return outcome.state is ProbeState.RUNNING and outcome.success and not is_unanswered(outcome)


def is_alone(view: View) -> bool:
    """Whether the cluster had one node when its nodes were last read, or is not known to have more."""
    latest = view.window.latest
    return latest is None or len(latest.nodes.value or ()) <= 1


def silent_node(view: View) -> str | None:
    """The node that does not answer: the one that did before, or the only one; None where that is not known."""
    latest = view.window.latest
    overview = latest.overview.value if latest else None
    nodes = (latest.nodes.value if latest else None) or ()
    if overview is not None and overview.node:
        return overview.node
    return nodes[0].name if len(nodes) == 1 else None


def of_api(view: View, families: Iterable[str] = VITAL) -> list[EvidenceReport]:
    """What the API said last, a part each."""
    return [
        EvidenceReport(
            what=f"reading {name}", value=error, expected="an answer within a second", source="management API"
        )
        for name, error in errors(view, families).items()
    ]


def of_probes(outcomes: Iterable[ProbeOutcome]) -> list[EvidenceReport]:
    """What probes said last, a stream each; the first three."""
    told = []
    for outcome in outcomes:
        steps = [f"{name}: {step.reason}" for name, step in outcome.steps.items() if step.reason]
        what = outcome.reason or "; ".join(steps) or outcome.state.value
        name = outcome.probe if outcome.stream == outcome.probe else f"{outcome.probe} {outcome.stream}"
        told.append(EvidenceReport(what=f"probe {name}", value=what, expected="served", source=f"probe {name}"))
    return told[:3]
