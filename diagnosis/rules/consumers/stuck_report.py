"""How a stuck consumer is told: who holds what since when, and how to get the messages back."""

from dataclasses import dataclass
from shlex import quote

from ackscope.clock import iso
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Link
from diagnosis.words import amount, client, close_connection, lasting, list_consumers, peer, whose


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Consumers that hold messages of a queue and acknowledge none.

    Attributes:
        early: too short yet to be more than information.
        holders: those consumers.
        allowed: the prefetch of each; 0 is no limit.
        consumers: how many were judged.
        standby: waiting consumers of a single active consumer.
        whole: nothing at all is acknowledged; False where others work on.
        growing: messages wait, and more are coming.
        published: messages published meanwhile.
        seen: seconds that the standstill was watched.
        held: seconds that it lasts at least: as watched, or as the broker says of idle channels.
        since: wall clock, seconds since 1970.
    """

    queue: Queue
    early: bool
    holders: tuple[Link, ...]
    allowed: tuple[int, ...]
    consumers: int
    standby: int
    whole: bool
    growing: bool
    published: int
    seen: float
    held: float
    since: float

    @property
    def one_by_one(self) -> bool:
        """Every holder takes one message at a time: a long job looks the same."""
        return max(self.allowed) == 1 and min(self.allowed) == 1


def report(rule: str, hold: Hold) -> FindingReport:
    """The finding for one queue."""
    queue = hold.queue
    stopped = hold.whole and hold.growing and not hold.one_by_one
    who = (
        f"its {amount(hold.consumers, 'consumer')}"
        if hold.whole
        else f"{len(hold.holders)} of its {hold.consumers} consumers"
    )
    verb = "holds" if (hold.consumers if hold.whole else len(hold.holders)) == 1 else "hold"
    state = "stands still" if hold.whole else "is served in part"
    held = queue.messages_unacked if hold.whole else sum(_held(link) for link in hold.holders)
    severity = Severity.CRITICAL if stopped else Severity.WARNING
    note = "; a long job looks the same for that long" if hold.early else ""
    return FindingReport(
        rule=rule,
        severity=Severity.INFO if hold.early else severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=iso(hold.since),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) {state}: {who} {verb} {amount(held or 0, 'message')} and "
            f"acknowledged none for {lasting(hold.held)}, seen over {lasting(hold.seen)}; "
            f"{amount(queue.messages_ready or 0, 'message')} waiting{note}"
        ),
        cause=_cause(hold),
        evidence=_evidence(hold),
        next_steps=_steps(hold),
        runbook=runbook(rule),
    )


def _held(link: Link) -> int:
    return (link.channel.messages_unacked or 0) if link.channel else 0


def _cause(hold: Hold) -> str:
    words = ["The client is connected and holds all that its prefetch allows, but acknowledges nothing."]
    words.append("Its handler hangs, or never acknowledges.")
    frozen = [link for link in hold.holders if link.connection is not None and link.connection.send_pend]
    if frozen:
        words.append("It does not read its socket either: the whole process is frozen, not only a handler.")
    if hold.one_by_one:
        words.append("With prefetch 1 one long job looks the same: ask its owner before you end it.")
    if 0 in hold.allowed:
        words.append("It has no prefetch limit: one that collects large batches looks the same.")
    return " ".join(words)


def _evidence(hold: Hold) -> tuple[EvidenceReport, ...]:
    queue = hold.queue
    items = [
        EvidenceReport(
            what="acknowledged",
            value=f"0 in {lasting(hold.seen)}" if hold.whole else f"0 in {lasting(hold.seen)} by these consumers",
            expected="more than 0",
            source="/api/queues message_stats.ack" if hold.whole else "/api/channels message_stats.ack",
        ),
        EvidenceReport(
            what="unacknowledged",
            value=amount(queue.messages_unacked or 0, "message"),
            expected="falls as they are acknowledged",
            source="/api/queues messages_unacknowledged",
        ),
        EvidenceReport(
            what="waiting",
            value=f"{amount(queue.messages_ready or 0, 'message')}, {hold.published} published meanwhile",
            source="/api/queues messages_ready, message_stats.publish",
        ),
    ]
    for link, allowed in list(zip(hold.holders, hold.allowed, strict=True))[:5]:
        idle = link.channel.idle_since if link.channel else None
        limit = f"prefetch {allowed}" if allowed else "no prefetch limit"
        items.append(
            EvidenceReport(
                what=whose(link),
                value=f"holds {_held(link)} with {limit}" + (f", idle since {iso(idle)}" if idle else ""),
                expected="acknowledges",
                source="/api/consumers, /api/channels messages_unacknowledged, idle_since",
            )
        )
        pending = link.connection.send_pend if link.connection else None
        if pending and link.connection:
            items.append(
                EvidenceReport(
                    what=f"connection {link.connection.name!r}",
                    value=f"{pending} bytes wait to be read by the client",
                    expected="0",
                    source="/api/connections send_pend",
                )
            )
    return tuple(items)


def _steps(hold: Hold) -> tuple[str, ...]:
    first = hold.holders[0]
    name = first.connection.name if first.connection else first.consumer.connection_name
    who, where = client(first.connection, name), peer(first)
    host, _, port = where.rpartition(":")
    find = f" on {host}, port {port} (find it there: ss -tnp 'sport = :{port}')" if host else ""
    steps = [
        f"see who holds what: {list_consumers(hold.queue)}",
        f"take a thread dump of {who!r}{find}, for it tells what the handler waits for; then restart it",
    ]
    if name:
        http, pid = close_connection(name, "stuck consumer")
        channels = first.connection.channels if first.connection else None
        all_of_it = f"; it ends all {channels} channels of that client" if channels and channels > 1 else ""
        again = f"they are queued again with redelivered=true, and processed again{all_of_it}"
        steps.append(f"to free the messages now, close its connection; {again}: {http}")
        steps.append(f"the same on a node: {pid}")
    steps.append(
        "later: a time limit in the handler, a prefetch that fits it, and a dead-letter exchange for what it cannot "
        f"process: rabbitmqctl list_policies -p {quote(hold.queue.vhost)}"
    )
    return tuple(steps)
