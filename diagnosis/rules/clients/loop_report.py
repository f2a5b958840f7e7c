"""How a loop of channels or connections is told: who, how fast, and what the broker answers."""

from ackscope.reports import EvidenceReport
from diagnosis.closing import Closing
from diagnosis.words import lasting, size

CLEAR = 0.7
"""Of the cluster's counts a cycle: at least this is one a cycle, whatever turn the counters were renewed in."""


def who(closing: Closing) -> str:
    """The application, told so that it can be found."""
    peer = f" at {closing.peer}" if closing.peer else ""
    user = f" (user {closing.connection.user!r})" if closing.connection.user else ""
    return f"{closing.client!r}{peer}{user}"


def pace(rate: float) -> str:
    """So many a second, or one in so many seconds."""
    return f"{rate:.0f} a second" if rate >= 2 else f"one every {lasting(1 / rate)}" if rate < 0.8 else "one a second"


def evidence(closing: Closing, counter: str) -> list[EvidenceReport]:
    """What was seen of the loop: its pace, and the traffic of one cycle."""
    churn = f"/api/overview churn_rates.{counter}_created, {counter}_closed"
    found = [
        EvidenceReport(
            what=f"{counter}s opened and closed",
            value=f"{pace(closing.rate)}, for {lasting(closing.lasts)}",
            expected="kept open",
            source=churn,
        )
    ]
    if closing.sent is not None and closing.received is not None:
        found.append(
            EvidenceReport(
                what="traffic of one cycle",
                value=f"{size(closing.received)} from the client, {size(closing.sent)} to it",
                source="/api/connections recv_oct, send_oct",
            )
        )
    if closing.error is not None:
        found.append(
            EvidenceReport(
                what="the broker's answer",
                value=f"channel.close with a text of {closing.error} bytes",
                expected="none",
                source="/api/connections send_oct, send_cnt",
            )
        )
    if closing.alone and closing.declares >= CLEAR:
        found.append(
            EvidenceReport(
                what="queues declared a cycle",
                value=f"{closing.declares:.1f}",
                source="/api/overview churn_rates.queue_declared",
            )
        )
    return found


def read_log(closing: Closing) -> str:
    """Where the broker's error stands in words."""
    node = f" on {closing.connection.node}" if closing.connection.node else ""
    return f"read the error{node}: grep -h -A2 'Channel error' /var/log/rabbitmq/*.log | tail -6"
