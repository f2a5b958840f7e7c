"""consumer-tcp-backpressure (B11): a consumer's process does not read its socket, so the broker cannot send.

`send_pend` stays above 0 while no byte is sent. From 4.2 on a classic queue also reports such a consumer as blocked.
A quorum queue with automatic acknowledgement shows nothing: what is in the socket counts as delivered, and is lost
when the client dies (seen on 3.10, 4.0 and 4.3).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, Unit, source
from ackscope.snapshot import Connection, Consumer
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.consumers._shared.objects import connection_peer, connection_subject
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "consumer-tcp-backpressure"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection for which bytes are waiting to be sent."""
    pending = [connection for connection in view.connections if connection.send_pend]
    if not pending:
        return
    consumers: dict[str, list[Consumer]] = defaultdict(list)
    for consumer in view.every_consumer:
        consumers[consumer.connection_name or ""].append(consumer)
    for connection in pending:
        unread = stretch(view.connection_history(connection.name), _unread)
        if consumers[connection.name] and len(unread) > 1 and span(unread) >= view.thresholds.interval:
            yield _finding(view, connection, consumers[connection.name], unread)


def _unread(older: Timestamped[Connection], newer: Timestamped[Connection]) -> bool:
    return (
        bool(older.value.send_pend)
        and bool(newer.value.send_pend)
        and newer.value.send_oct is not None
        and newer.value.send_oct == older.value.send_oct
    )


def _finding(view: View, connection: Connection, consumers: Sequence[Consumer], unread: Series[Connection]) -> Finding:
    seconds, warning_after = span(unread), view.thresholds.consumers.unread_for
    pending = connection.send_pend or 0
    listed: list[Fact] = [{"tag": each.tag, "queue": each.queue} for each in consumers]
    evidence = [
        Evidence(key="unsent", value=pending, unit=Unit.BYTES, source=source("/api/connections", "send_pend")),
        Evidence(key="sent", value=0, unit=Unit.BYTES, source=source("/api/connections", "send_oct")),
        Evidence(key="consumers", value=len(consumers), source=source("/api/consumers")),
    ]
    if any(each.activity_status == "blocked" for each in consumers):
        evidence.append(Evidence(key="status", value="blocked", source=source("/api/consumers", "activity_status")))
    late = seconds >= warning_after
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=connection_subject(connection),
        since=unread[0].at.iso(),
        facts={
            "client": client_name(connection),
            "peer": connection_peer(connection),
            "queues": sorted({each.queue for each in consumers}),
            "consumers": listed,
            "auto_ack": any(each.ack_required is False for each in consumers),
            "unsent_bytes": pending,
            "warning_after_seconds": warning_after,
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=tuple(QueueRef(*key) for key in sorted({(each.vhost, each.queue) for each in consumers})),
            channels=tuple(dict.fromkeys(each.channel_name for each in consumers if each.channel_name)),
            connections=(connection.name,),
            clients=(connection.client_name,) if connection.client_name else (),
        ),
        certainty=Certainty.CERTAIN if late else Certainty.EARLY,
        seen_seconds=seconds,
    )
