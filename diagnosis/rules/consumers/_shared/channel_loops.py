"""Facts and evidence about consumers that open and close channels or connections in a loop."""

from ackscope.findings import Certainty, Evidence, Fact, Severity, Unit, source
from diagnosis.churn_loops import ChurnLoop
from diagnosis.contract import View

MIN_PER_CYCLE = 1 / 3
"""Minimum messages per cycle; less is noise, because the broker refreshes its counters at different times."""


def loop_severity(view: View, loop: ChurnLoop) -> Severity:
    """Return INFO until the loop has lasted for a while; a failed start of an application is over by then."""
    return Severity.WARNING if loop.lasts >= view.thresholds.consumers.loop_for else Severity.INFO


def loop_certainty(view: View, loop: ChurnLoop) -> Certainty:
    """Return the certainty by duration; the refused request is inferred, not reported by the broker."""
    return Certainty.EARLY if loop_severity(view, loop) is Severity.INFO else Certainty.LIKELY


def loop_facts(view: View, loop: ChurnLoop) -> dict[str, Fact]:
    """Return facts about a loop, for the macro `loop_client` and the command that closes its connection.

    Returns:
        `{"client", "peer", "connection", "reconnects", "cycle_rate", "loop_seconds", "error_bytes",
        "warning_after_seconds"}`; `connection` is None if whole connections come and go, `error_bytes` is the
        length of the broker's error text, None if unknown.
    """
    return {
        "client": loop.client,
        "peer": loop.peer,
        "connection": None if loop.whole else loop.connection.name,
        "reconnects": loop.whole,
        "cycle_rate": loop.rate,
        "loop_seconds": loop.lasts,
        "error_bytes": loop.error,
        "warning_after_seconds": view.thresholds.consumers.loop_for,
    }


def loop_evidence(loop: ChurnLoop) -> Evidence:
    """Return as evidence how often the client opens and closes a channel or a connection."""
    kind = "connection" if loop.whole else "channel"
    return Evidence(
        key="cycles",
        value=loop.rate,
        unit=Unit.PER_SECOND,
        source=source("/api/overview", f"churn_rates.{kind}_created", f"churn_rates.{kind}_closed")
        + source("/api/connections", "send_oct"),
        facts={"client": loop.client, "reconnects": loop.whole, "loop_seconds": loop.lasts},
    )


def error_evidence(loop: ChurnLoop, text: str) -> Evidence:
    """Return as evidence the length of the broker's error text, and a text of this length."""
    return Evidence(
        key="error", value=loop.error, source=source("/api/connections", "send_oct", "send_cnt"), facts={"text": text}
    )
