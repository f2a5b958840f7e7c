"""Losses that go on while the node is killed and started again: whether a count exceeds what was lost.

The counters of a queue start again with its node, and what happens between the last reading and the end of the node is
seen by nobody. So less may be counted than was lost, but never more, and not by another cause. A queue with a TTL loses
messages also after its publisher has ended, so each count is compared with what is lost when it is made.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address
from ackscope.errors import AckscopeError
from bench.bench import Document, progress
from bench.diagnosis.loss_counts import LOSSES, allowance, lost_by
from bench.diagnosis.scene import FindingDocument, Scene, flat
from bench.exporter.goals import Goal
from bench.tables import table
from lab.amqp import LOST, PERSISTENT, connect, parse_lab_address, publish
from lab.brokers import minor
from lab.control import Control

_TRANSIENT = 1
_RATE = 20.0
_BEFORE, _AWAY, _AFTER, _JUDGED = 35.0, 5.0, 30.0, 30.0
"""Seconds of traffic before the kill, until the start, of traffic after it, and of findings without traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartKind:
    """A queue with traffic across the restart.

    Attributes:
        rules: rules that name what it loses; empty if it loses nothing.
        arguments: of the queue.
        settles: "ack", "reject" or "requeue" each delivery; "" without a consumer.
        mode: delivery mode of its messages.
        goes_on: publishers come back after the restart.
    """

    name: str
    rules: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settles: str = ""
    mode: int = PERSISTENT
    goes_on: bool = True


_QUORUM = {"x-queue-type": "quorum"}

RESTART_KINDS: tuple[RestartKind, ...] = (
    RestartKind(name="acked", settles="ack"),
    RestartKind(name="acked, quorum", arguments=_QUORUM, settles="ack"),
    RestartKind(name="waiting"),
    RestartKind(name="waiting, quorum", arguments=_QUORUM),
    RestartKind(name="reject", rules=("reject-loss",), settles="reject"),
    RestartKind(name="reject, quorum", rules=("reject-loss",), arguments=_QUORUM, settles="reject"),
    RestartKind(name="TTL", rules=("ttl-expiry-loss",), arguments={"x-message-ttl": 1000}),
    RestartKind(name="TTL longer than the restart", rules=("ttl-expiry-loss",), arguments={"x-message-ttl": 30_000}),
    RestartKind(name="drop at a limit", rules=("maxlen-drop-head",), arguments={"x-max-length": 50}),
    RestartKind(
        name="delivery limit", rules=("poison-drop",), arguments={**_QUORUM, "x-delivery-limit": 0}, settles="requeue"
    ),
    RestartKind(name="transient", rules=("restart-loss",), mode=_TRANSIENT, goes_on=False),
)


@dataclass(slots=True, kw_only=True)
class RestartRow:
    """Result of one queue.

    Attributes:
        lost: messages that were confirmed and at the end are neither acknowledged nor in the queue.
        perhaps: messages whose confirm the end of the node took; each may be lost too.
        counted: what the findings counted at the end, by rule.
        most: the most that they counted together at any moment.
        rules: rules that ever counted a loss.
        named: whether a rule of its kind counted a loss after the restart, or nothing was lost.
        false: what is wrong with the counts.
        unsure: rules that said of the queue that they cannot tell.
    """

    broker: str
    kind: str
    lost: int = 0
    perhaps: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    most: int = 0
    rules: list[str] = field(default_factory=list)
    named: bool = False
    false: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)


class _Traffic(threading.Thread):
    """Publishes to a queue and settles what it delivers, and connects again whenever its connections are lost.

    Attributes:
        confirmed, unconfirmed: messages published, with and without an answer of the broker.
        acked: messages acknowledged.
    """

    def __init__(self, address: Address, kind: RestartKind) -> None:
        super().__init__(daemon=True)
        self.kind = kind
        self.queue = f"ledger.restart.{kind.name.replace(' ', '-').replace(',', '')}"
        self.confirmed = self.unconfirmed = self.acked = 0
        self.stopping = threading.Event()
        self._address = address

    def run(self) -> None:
        """Carry on until `stopping` is set; see the class."""
        self._declare()
        while not self.stopping.is_set():
            try:
                self._session()
            except (AckscopeError, *LOST):
                if not self.kind.goes_on:
                    return
                self.stopping.wait(0.5)

    def end(self) -> None:
        """Publish and settle no more."""
        self.stopping.set()
        self.join(30.0)

    def losses(self) -> tuple[int, int]:
        """Return how many messages are lost now, and how many more may be: those without a confirm.

        What a consumer holds counts as lost: the broker tells the ready messages only.

        Raises:
            AckscopeError, pika.exceptions.AMQPError, OSError: the node is away, or has not recovered the queue.
        """
        if self.kind.settles == "ack":
            return 0, self.unconfirmed
        connection = connect(self._address, f"{self.queue}-count")
        try:
            left = int(connection.channel().queue_declare(self.queue, passive=True).method.message_count)
        finally:
            _close(connection)
        # A message without a confirm may be in the queue all the same.
        return max(0, self.confirmed - left), max(0, self.unconfirmed + min(0, self.confirmed - left))

    def clear(self) -> None:
        """Delete the queue."""
        connection = connect(self._address, f"{self.queue}-cleanup")
        connection.channel().queue_delete(self.queue)
        connection.close()

    def _declare(self) -> None:
        connection = connect(self._address, f"{self.queue}-setup")
        channel = connection.channel()
        channel.queue_delete(self.queue)
        channel.queue_declare(self.queue, durable=True, arguments=dict(self.kind.arguments))
        connection.close()

    def _session(self) -> None:
        publishing = connect(self._address, f"{self.queue}-publisher")
        consuming = connect(self._address, f"{self.queue}-consumer")
        try:
            channel = publishing.channel()
            channel.confirm_delivery()
            if self.kind.settles:
                consumer = consuming.channel()
                consumer.basic_qos(prefetch_count=10)
                consumer.basic_consume(self.queue, lambda inner, method, *_: self._settle(inner, method))
            while not self.stopping.is_set():
                self.unconfirmed += 1
                publish(channel, self.queue, delivery_mode=self.kind.mode)
                self.confirmed += 1
                self.unconfirmed -= 1
                publishing.process_data_events(time_limit=0)
                consuming.process_data_events(time_limit=1 / _RATE)
        finally:
            _close(publishing)
            _close(consuming)

    def _settle(self, channel: BlockingChannel, method: Any) -> None:
        if self.kind.settles == "ack":
            channel.basic_ack(method.delivery_tag)
            self.acked += 1
        else:
            channel.basic_reject(method.delivery_tag, requeue=self.kind.settles == "requeue")


def _close(connection: BlockingConnection) -> None:
    try:
        connection.close()
    except LOST:
        return


def across_restart(stage: Scene) -> list[RestartRow]:
    """Run traffic on all queues, kill and start the node meanwhile, and compare findings with what was lost."""
    control = Control.load(stage.lab.folder)
    address = parse_lab_address(stage.lab.nodes[0].amqp)
    running = [_Traffic(address, kind) for kind in RESTART_KINDS]
    rows = {each.queue: RestartRow(broker=stage.lab.broker, kind=each.kind.name) for each in running}
    for each in running:
        each.start()
    _watch(stage, running, rows, _BEFORE)
    control.kill(0)
    _watch(stage, running, rows, _AWAY)
    control.restart(0)
    _watch(stage, running, rows, _AFTER, after=True)
    for each in running:
        each.end()
    _watch(stage, running, rows, _JUDGED, after=True)
    for each in running:
        row = rows[each.queue]
        row.lost, row.perhaps = each.losses()
        each.clear()
        judge(row, each.kind)
        progress(f"  {row.kind}: {row.lost} to {row.lost + row.perhaps} lost, {row.counted} {'; '.join(row.false)}")
    return list(rows.values())


def _watch(
    stage: Scene, running: Sequence[_Traffic], rows: Mapping[str, RestartRow], seconds: float, *, after: bool = False
) -> None:
    """Note what findings count and what is unsure, until the time is over, and compare each count as it is made."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, unsure = flat(stage.findings()), stage.unsure()
        for each in running:
            row = rows[each.queue]
            most = row.most
            about = [finding for finding, _ in found if finding["subject"]["name"] == each.queue]
            doubts = [doubt for doubt in unsure if repr(each.queue) in doubt["because"]]
            note(row, each.kind, about, doubts, after=after)
            if row.most > most:
                _compare_now(row, each)
        time.sleep(0.5)


def _compare_now(row: RestartRow, traffic: _Traffic) -> None:
    """Compare a new highest count with what is lost by now; not while the node is away."""
    try:
        compare(row, sum(traffic.losses()))
    except (AckscopeError, *LOST):
        return


def note(
    row: RestartRow,
    kind: RestartKind,
    findings: Sequence[FindingDocument],
    unsure: Sequence[FindingDocument],
    *,
    after: bool,
) -> None:
    """Record what the findings about a queue count at one moment.

    Args:
        row: the row of the queue.
        kind: its traffic.
        findings: findings about the queue.
        unsure: what rules cannot tell about it.
        after: whether the node was started again.
    """
    row.counted = lost_by(findings)
    row.most = max(row.most, sum(row.counted.values()))
    row.rules = sorted({*row.rules, *row.counted})
    row.unsure = sorted({*row.unsure, *(each["rule"] for each in unsure if each["rule"] in LOSSES)})
    row.named = row.named or not kind.rules or (after and any(rule in row.counted for rule in kind.rules))


def compare(row: RestartRow, possible: int) -> None:
    """Compare the highest count up to now with the most that can be lost by now; the first false one is noted."""
    if not row.false and row.most > possible + allowance(possible):
        row.false.append(f"{row.most} counted, at most {possible} lost")


def judge(row: RestartRow, kind: RestartKind) -> None:
    """Compare the counts with what was lost in the end, and the rules with those of the kind."""
    compare(row, row.lost + row.perhaps)
    row.false += [f"reported by {rule}" for rule in row.rules if rule not in kind.rules]


def restart_goals(rows: Sequence[Document]) -> list[Goal]:
    """Return the goals over all queues; none without a restart."""
    if not rows:
        return []
    return [
        Goal("queues with a false count across a restart", sum(bool(row["false"]) for row in rows), 0),
        Goal("kinds that no finding names after a restart", sum(not row["named"] for row in rows), 0),
    ]


def restart_lines(rows: Sequence[Document]) -> list[str]:
    """Return a table with one row per queue, then false counts; empty without a restart."""
    if not rows:
        return []
    shown = [
        (
            minor(row["broker"]),
            row["kind"],
            str(row["lost"]) + (f" to {row['lost'] + row['perhaps']}" if row["perhaps"] else ""),
            str(sum(row["counted"].values())) if row["counted"] else "-",
            str(row["most"]),
            "yes" if row["named"] else "NO",
        )
        for row in rows
    ]
    text = ["", *table(("restart", "kind", "lost", "counted", "at most", "named"), shown)]
    text += [
        f"cannot tell, {row['kind']} ({row['broker']}): {', '.join(row['unsure'])}" for row in rows if row["unsure"]
    ]
    text += [f"false, {row['kind']} ({row['broker']}): {'; '.join(row['false'])}" for row in rows if row["false"]]
    return text
