"""Clients whose channels the broker closes again and again, as far as that is about consuming."""

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport
from diagnosis.closing import Closing
from diagnosis.contract import View
from diagnosis.words import close_connection, lasting

SOME = 1 / 3
"""Messages a cycle: below it, nothing (the broker renews its counters by turns)."""


def severity(view: View, closing: Closing) -> Severity:
    """Information until it has gone on for a while: an application that starts badly once is over by then."""
    return Severity.WARNING if closing.lasts >= view.thresholds.consumers.loop_for else Severity.INFO


def who(closing: Closing) -> str:
    """The application and where it runs."""
    return f"{closing.client!r} at {closing.peer}" if closing.peer else f"{closing.client!r}"


def loop_evidence(closing: Closing) -> EvidenceReport:
    """How often it goes round."""
    what = "connections" if closing.whole else "channels"
    source = "connection_created, connection_closed" if closing.whole else "channel_created, channel_closed"
    return EvidenceReport(
        what=f"{what} opened and closed by it",
        value=f"{closing.rate:.1f} a second, for {lasting(closing.lasts)}",
        expected="near 0",
        source=f"/api/overview churn_rates.{source}; /api/connections send_oct",
    )


def stop_it(closing: Closing, reason: str) -> tuple[str, ...]:
    """How to end its connection, where it has one that stays."""
    if closing.whole:
        return ()
    http, pid = close_connection(closing.connection.name, reason)
    return (f"if it does harm, close its connection: {http}", f"the same on a node: {pid}")
