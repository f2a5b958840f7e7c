"""consumer-tcp-backpressure (B11): a consumer's process does not read its socket, so the broker cannot send.

`send_pend` stays above 0 while no byte leaves. From 4.2 on a classic queue also says that such a consumer is blocked.
Of a quorum queue with automatic acknowledgement nothing is to be seen in the queue: what lies in the socket counts as
delivered, and is lost when the client goes (seen on 3.10, 4.0 and 4.3).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection, Consumer
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import client, close_connection, lasting, size, some

NAME = "consumer-tcp-backpressure"

_FOLLOWS = (
    "stuck-consumer",
    "slow-consumer",
    "prefetch-hoarder",
    "queue-overload",
    "stale-head",
    "consumer-ack-timeout",
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection to which bytes wait to be sent."""
    pending = [connection for connection in view.connections if connection.send_pend]
    if not pending:
        return
    consumers: dict[str, list[Consumer]] = defaultdict(list)
    for consumer in view.part("consumers"):
        consumers[consumer.connection_name or ""].append(consumer)
    for connection in pending:
        still = stretch(view.connection_history(connection.name), _unread)
        if consumers[connection.name] and len(still) > 1 and span(still) >= view.thresholds.interval:
            yield _finding(view, connection, consumers[connection.name], still)


def _unread(older: Seen[Connection], newer: Seen[Connection]) -> bool:
    return (
        bool(older.value.send_pend)
        and bool(newer.value.send_pend)
        and newer.value.send_oct is not None
        and newer.value.send_oct == older.value.send_oct
    )


def _finding(
    view: View, connection: Connection, consumers: Sequence[Consumer], still: Series[Connection]
) -> FindingReport:
    who, seconds = client(connection, connection.name), span(still)
    late = seconds >= view.thresholds.consumers.unread_for
    where = f"{connection.peer_host}:{connection.peer_port}" if connection.peer_host else "its machine"
    queues = sorted({f"{each.queue!r}" for each in consumers})
    automatic = any(each.ack_required is False for each in consumers)
    lost = " With automatic acknowledgement, what was sent and not read is lost when it goes." if automatic else ""
    blocked = sorted({each.activity_status for each in consumers if each.activity_status == "blocked"})
    http, pid = close_connection(connection.name, "does not read its socket")
    evidence = [
        EvidenceReport(
            what="waits to be read by the client",
            value=size(connection.send_pend or 0),
            expected="0",
            source="/api/connections send_pend",
        ),
        EvidenceReport(
            what="sent to it",
            value=f"0 bytes in {lasting(seconds)}",
            expected="more than 0 while something waits",
            source="/api/connections send_oct",
        ),
        EvidenceReport(
            what="its consumers",
            value=f"{some(f'{each.tag!r} of queue {each.queue!r}' for each in consumers)}",
            source="/api/consumers",
        ),
    ]
    if blocked:
        evidence.append(
            EvidenceReport(
                what="the queue calls its consumer", value="blocked", source="/api/consumers activity_status"
            )
        )
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="connection", name=connection.name, vhost=connection.vhost, node=connection.node),
        since=still[0].at.iso(),
        summary=(
            f"{who!r} at {where} consumes from {some(queues)} and does not read its socket: "
            f"{size(connection.send_pend or 0)} wait, nothing was sent for {lasting(seconds)}"
        ),
        cause=(
            "The client's process is frozen, or the thread that reads the socket waits for its handler; the socket's "
            f"buffers are full, and the broker cannot send more.{lost}"
        ),
        evidence=tuple(evidence),
        next_steps=(
            (
                f"look at that process on {where}: is it stopped, swapping, in garbage collection, waiting in a "
                "handler "
                "that "
                "runs in the thread of the connection? take a thread dump, then restart it"
            ),
            f"or close its connection: {http}",
            f"the same on a node: {pid}",
            "later: manual acknowledgement and a prefetch limit, so that the broker never sends more than it can take",
        ),
        runbook=runbook(NAME),
    )
