"""Planted losses with known counts: what diagnosis counts, which cause it names, and what it says of a healthy shop."""

import argparse
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.address import Address
from bench.bench import Bench, Document, progress
from bench.diagnosis.loss_counts import LOSSES, is_exact, lost_by
from bench.diagnosis.losses_across_restart import RESTART_KINDS, across_restart, restart_goals, restart_lines
from bench.diagnosis.scene import FindingDocument, Scene, flat, scene
from bench.exporter.goals import Goal
from bench.tables import table
from lab.amqp import PERSISTENT, connect, parse_lab_address, publish
from lab.brokers import SUITES, minor
from lab.decoys import DECOYS

_SETTLED, _COUNTED = 12.0, 40.0
"""Seconds until the statistics show a new queue in two polls, and seconds in which a loss must be counted."""
_IN_TIME = 2
"""Polls until a loss must be counted: the first one with the final counters, and the next one. A length is refreshed
seconds before the deliveries that explain it, so what one poll shows alone may be no loss.
"""
_RATE = 20.0
PARTS = ("healthy", "one", "two", "restart")

Settle = Callable[[BlockingChannel, Any], int]
"""Settles a delivery. Returns how many messages the queue loses by it; of two kinds, by the first of them."""


def _reject(channel: BlockingChannel, method: Any) -> int:
    channel.basic_reject(method.delivery_tag, requeue=False)
    return 1


def _nack_several(channel: BlockingChannel, method: Any) -> int:
    if method.delivery_tag % 5 != 0:
        return 0
    channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)
    return 5


def _requeue(channel: BlockingChannel, method: Any) -> int:
    channel.basic_reject(method.delivery_tag, requeue=True)
    return 1


def _reject_every_second(channel: BlockingChannel, method: Any) -> int:
    """Reject half of the messages at their first delivery, and return the others whenever they come."""
    rejects = not method.redelivered and method.delivery_tag % 2 == 0
    channel.basic_reject(method.delivery_tag, requeue=not rejects)
    return int(rejects)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossKind:
    """One kind of loss.

    Attributes:
        rules: rules that name it.
        second: rules that name the second kind of loss in the same queue; empty without one.
        arguments: of its queue.
        settle: what its consumer does with each message; None without a consumer.
        gets: it polls instead of consuming, after so many publishes; 0 if it consumes.
        expires: expiration of each message, ms; "" for none.
        purges: the queue is purged at the end.
    """

    name: str
    rules: tuple[str, ...]
    second: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settle: Settle | None = None
    gets: int = 0
    expires: str = ""
    purges: bool = False
    brokers: tuple[str, ...] = tuple(SUITES)


_QUORUM = {"x-queue-type": "quorum"}
_POISON = ("poison-drop",)
_BEFORE = ("unexplained-loss", "ttl-expiry-loss", "queue-purged")

KINDS: tuple[LossKind, ...] = (
    LossKind(name="reject", rules=("reject-loss",), settle=_reject),
    LossKind(name="reject, quorum", rules=("reject-loss",), arguments=_QUORUM, settle=_reject),
    LossKind(name="nack of five at once", rules=("reject-loss",), settle=_nack_several),
    LossKind(name="get and reject", rules=("reject-loss",), settle=_reject, gets=1),
    LossKind(name="TTL of the queue", rules=("ttl-expiry-loss",), arguments={"x-message-ttl": 1000}),
    LossKind(name="TTL, quorum", rules=("ttl-expiry-loss",), arguments={**_QUORUM, "x-message-ttl": 1000}),
    LossKind(name="expiration of messages", rules=_BEFORE, expires="1000"),
    LossKind(name="drop at a limit", rules=("maxlen-drop-head",), arguments={"x-max-length": 50}),
    LossKind(name="drop at a limit, quorum", rules=("maxlen-drop-head",), arguments={**_QUORUM, "x-max-length": 50}),
    LossKind(name="purge", rules=("queue-purged",), purges=True),
    LossKind(
        name="purge long before a TTL", rules=("queue-purged",), arguments={"x-message-ttl": 900_000}, purges=True
    ),
    LossKind(name="delivery limit", rules=_POISON, arguments={**_QUORUM, "x-delivery-limit": 2}, settle=_requeue),
    LossKind(
        name="negative limit",
        rules=_POISON,
        arguments={**_QUORUM, "x-delivery-limit": -1},
        settle=_requeue,
        brokers=("3.10",),
    ),
    LossKind(name="delivery limit 0", rules=_POISON, arguments={**_QUORUM, "x-delivery-limit": 0}, settle=_requeue),
)

_REJECT, _TTL, _DROP, _PURGE = ("reject-loss",), ("ttl-expiry-loss",), ("maxlen-drop-head",), ("queue-purged",)
_NO_RETURN = {**_QUORUM, "x-delivery-limit": 0}

PAIRS: tuple[LossKind, ...] = (
    LossKind(
        name="reject + TTL", rules=_REJECT, second=_TTL, arguments={"x-message-ttl": 1000}, settle=_reject, gets=2
    ),
    LossKind(
        name="reject + drop at a limit",
        rules=_REJECT,
        second=_DROP,
        arguments={"x-max-length": 50},
        settle=_reject,
        gets=2,
    ),
    LossKind(name="reject + purge", rules=_REJECT, second=_PURGE, settle=_reject, gets=2, purges=True),
    LossKind(name="reject + expiration", rules=_REJECT, second=_BEFORE, settle=_reject, gets=2, expires="1000"),
    LossKind(name="drop at a limit + purge", rules=_DROP, second=_PURGE, arguments={"x-max-length": 50}, purges=True),
    LossKind(
        name="delivery limit + TTL",
        rules=_POISON,
        second=_TTL,
        arguments={**_NO_RETURN, "x-message-ttl": 1000},
        settle=_requeue,
        gets=2,
    ),
    LossKind(
        name="delivery limit + drop",
        rules=_POISON,
        second=_DROP,
        arguments={**_NO_RETURN, "x-max-length": 50},
        settle=_requeue,
        gets=2,
    ),
    LossKind(
        name="reject + delivery limit",
        rules=_REJECT,
        second=_POISON,
        arguments={**_QUORUM, "x-delivery-limit": 2},
        settle=_reject_every_second,
    ),
)


@dataclass(slots=True, kw_only=True)
class LossRow:
    """Result of one kind.

    Attributes:
        planted: messages that were lost, by each kind of loss in its queue.
        counted: messages that the findings about the queue count; None without a finding.
        by_rule: messages that each of these findings counts.
        right: whether each kind of loss is named by a rule of its own.
        apart: whether each kind is counted within 2 % of the truth; always of a single one whose sum is right.
        seconds: from the last lost message until the sum was within 2 % of the truth; None if it never was.
        polls: the poll with which each kind was counted right: 1 is the first one that shows the final counters.
        changes: poll since the final counters, and what was counted from then on by rule.
    """

    broker: str
    kind: str
    planted: list[int]
    counted: int | None = None
    by_rule: dict[str, int] = field(default_factory=dict)
    right: bool = False
    apart: bool = False
    seconds: float | None = None
    polls: int | None = None
    changes: list[tuple[int, dict[str, int]]] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the counts (7)")
    parser.add_argument("--healthy", type=float, default=2.0, help="minutes of the healthy shop with restarts (2)")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the healthy shop; leaders move with three (1)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="these only (all)")


def measure(args: argparse.Namespace) -> Document:
    """Watch a healthy shop; plant one kind in each queue, then two kinds in each, then lose across a restart."""
    rows: list[LossRow] = []
    false: list[str] = []
    restarts: list[Document] = []
    draw = random.Random(args.seed)  # noqa: S311  draws counts, guards nothing
    for broker in args.broker:
        if "healthy" in args.parts:
            with scene(broker, args.nodes) as stage:
                false += _healthy(stage, args.healthy)
        planted = {"one": KINDS, "two": PAIRS}
        if set(planted) & set(args.parts):
            with scene(broker) as stage:
                for part, kinds in planted.items():
                    if part in args.parts:
                        progress(f"{stage.lab.broker}: losses at once, {part} in each queue")
                        rows += _planted(stage, [kind for kind in kinds if broker in kind.brokers], draw)
        if "restart" in args.parts:
            # The sample workload does not survive it, so this scene ends with it.
            with scene(broker) as stage:
                progress(f"{stage.lab.broker}: {len(RESTART_KINDS)} queues while the node is killed and started")
                restarts += [asdict(row) for row in across_restart(stage)]
    goals = [
        Goal("kinds that no finding names", sum(not row.right for row in rows) if rows else None, 0),
        Goal("queues counted wrong by more than 2 %", sum(row.seconds is None for row in rows) if rows else None, 0),
        Goal(
            "queues whose two kinds are counted wrong by more than 2 %",
            sum(not row.apart for row in rows) if rows else None,
            0,
        ),
        Goal("queues counted later than a poll after the final counters", _late(rows), 0),
        Goal("losses reported in the healthy shop", len(false) if "healthy" in args.parts else None, 0),
        *restart_goals(restarts),
    ]
    return {
        "rows": [asdict(row) for row in rows],
        "restarts": restarts,
        "false": false,
        "goals": [goal.as_dict() for goal in goals],
    }


def _healthy(stage: Scene, minutes: float) -> list[str]:
    """Return the losses that are reported while consumers are restarted, queues are drained, and leaders move."""
    progress(f"{stage.lab.broker}: the healthy shop for {minutes:g} minutes, {len(stage.lab.nodes)} nodes")
    reported: set[str] = set()
    with ExitStack() as stack:
        for name in ("decoy.deploy-restart", "decoy.burst", "decoy.leader-moves"):
            spec = DECOYS[name]
            if len(stage.lab.nodes) >= spec.nodes and minor(stage.lab.broker) in spec.brokers:
                stack.enter_context(stage.held(spec))
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            for finding, _ in flat(stage.findings()):
                if finding["rule"] in LOSSES:
                    reported.add(f"{finding['severity']} {finding['rule']} {finding['subject']['name']}")
            time.sleep(1.0)
    return sorted(reported)


def _planted(stage: Scene, kinds: Sequence[LossKind], draw: random.Random) -> list[LossRow]:
    address = parse_lab_address(stage.lab.nodes[0].amqp)
    planting = [_Planting(address, kind, draw.randint(150, 400)) for kind in kinds]
    for each in planting:
        each.start()
    for each in planting:
        each.join()
    rows = {each.queue: LossRow(broker=stage.lab.broker, kind=each.kind.name, planted=each.lost()) for each in planting}
    until = time.monotonic() + _COUNTED
    shown: dict[str, list[str]] = {each.queue: [] for each in planting}
    read_at = -1.0
    while time.monotonic() < until and any(row.seconds is None or not row.apart for row in rows.values()):
        at, queues = stage.queues()
        if at != read_at:
            read_at = at
            for queue, counters in shown.items():
                counters.append(queues.get(queue, ""))
        found = flat(stage.findings())
        for each in planting:
            about = [finding for finding, _ in found if finding["subject"]["name"] == each.queue]
            row = rows[each.queue]
            count_row(row, about, each.kind, time.monotonic() - each.ended)
            poll, counts = polls_since_final(shown[each.queue]), lost_by(about)
            if not row.changes or row.changes[-1][1] != counts:
                row.changes.append((poll, counts))
            if row.polls is None and row.seconds is not None and row.apart:
                row.polls = poll
        time.sleep(0.5)
    for each in planting:
        each.clear()
    for row in rows.values():
        progress(f"  {row.kind}: {row.planted} lost, {row.by_rule or 'not named'}")
    return list(rows.values())


def polls_since_final(counters: Sequence[str]) -> int:
    """Return with how many polls the counters have been what they are now.

    Args:
        counters: those of each poll, the newest last.
    """
    return next((place for place, each in enumerate(reversed(counters)) if each != counters[-1]), len(counters))


def _late(rows: Sequence[LossRow]) -> int | None:
    """Return how many queues were not counted right by the poll after the first one with their final counters."""
    return sum(row.polls is None or row.polls > _IN_TIME for row in rows) if rows else None


def count_row(row: LossRow, findings: Sequence[FindingDocument], kind: LossKind, seconds: float) -> None:
    """Record what the findings about a queue count now.

    Args:
        row: the row of the queue; its `planted` are the losses in the order of the kind's `rules` and `second`.
        findings: findings about the queue.
        kind: how its messages were lost.
        seconds: since the last message was lost.
    """
    counts = lost_by(findings)
    if not counts:
        return
    row.by_rule, row.counted = counts, sum(counts.values())
    causes = (kind.rules, kind.second) if kind.second else (kind.rules,)
    row.right = all(any(rule in counts for rule in rules) for rules in causes)
    each = [sum(counts.get(rule, 0) for rule in rules) for rules in causes]
    row.apart = all(map(is_exact, each, row.planted))
    if row.seconds is None and is_exact(row.counted, sum(row.planted)):
        row.seconds = seconds


class _Planting(threading.Thread):
    """Publishes a number of messages to a queue, which loses them in one way.

    Attributes:
        queue: its name.
        ended: when the last message was published, monotonic clock.
        settled: messages that its consumer settled and that the queue lost by that.
        purged: messages that were purged.
        left: messages in the queue at the end.
    """

    def __init__(self, address: Address, kind: LossKind, number: int) -> None:
        super().__init__(daemon=True)
        self.kind, self.number = kind, number
        self.queue = f"ledger.{re.sub(r'[^a-zA-Z0-9]+', '-', kind.name)}"
        self.ended = 0.0
        self.settled = self.purged = self.left = 0
        self._address = address

    def lost(self) -> list[int]:
        """Return the messages lost by each of its kinds."""
        lost = self.number - self.left
        if not self.kind.second:
            return [lost]
        first = self.settled if self.kind.settle else lost - self.purged
        return [first, lost - first]

    def run(self) -> None:
        """Declare the queue, wait until polls show it empty, lose the messages."""
        connection = connect(self._address, f"{self.queue}-publisher")
        consuming = connect(self._address, f"{self.queue}-consumer")
        channel, consumer = connection.channel(), consuming.channel()
        channel.queue_delete(self.queue)
        channel.queue_declare(self.queue, durable=True, arguments=dict(self.kind.arguments))
        settle = self.kind.settle
        if settle is not None and not self.kind.gets:
            consumer.basic_qos(prefetch_count=10)
            consumer.basic_consume(self.queue, lambda inner, method, *_: self._settle(inner, method))
        self._serve(connection, consuming, _SETTLED)
        channel.confirm_delivery()
        number = self.number - self.number % 5 if settle is _nack_several else self.number
        self.number = number
        for place in range(1, number + 1):
            properties: dict[str, Any] = {"delivery_mode": PERSISTENT}
            if self.kind.expires:
                properties["expiration"] = self.kind.expires
            publish(channel, self.queue, **properties)
            self._serve(connection, consuming, 1 / _RATE)
            if self.kind.gets and place % self.kind.gets == 0:
                method, _properties, _body = consumer.basic_get(self.queue)
                if method is not None:
                    self._settle(consumer, method)
        if self.kind.purges:
            self._serve(connection, consuming, _SETTLED)
            self.purged = channel.queue_purge(self.queue).method.message_count
        self._serve(connection, consuming, 2.0)
        self.left = channel.queue_declare(self.queue, passive=True).method.message_count
        self.ended = time.monotonic()
        self._connections = (connection, consuming)

    def clear(self) -> None:
        """Delete the queue and close the connections."""
        for connection in self._connections:
            connection.close()
        connection = connect(self._address, f"{self.queue}-cleanup")
        connection.channel().queue_delete(self.queue)
        connection.close()

    def _settle(self, channel: BlockingChannel, method: Any) -> None:
        if self.kind.settle is not None:
            self.settled += self.kind.settle(channel, method)

    @staticmethod
    def _serve(connection: Any, consuming: Any, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            connection.process_data_events(time_limit=0)
            consuming.process_data_events(time_limit=min(left, 0.05))


def lines(document: Document) -> list[str]:
    """Return a table with one row per queue, what was reported of the healthy shop, and a table of the restart."""
    rows = [
        (
            minor(row["broker"]),
            row["kind"],
            " + ".join(map(str, row["planted"])),
            "-" if row["counted"] is None else " + ".join(str(each) for each in row["by_rule"].values()),
            "-" if row["seconds"] is None else f"{row['seconds']:.0f} s",
            "-" if row["polls"] is None else str(row["polls"]),
            "yes" if row["right"] else "NO",
        )
        for row in document["rows"]
    ]
    text = table(("", "kind", "lost", "counted", "after", "polls", "named"), rows) if rows else []
    text += [
        f"counted by other rules, {row['kind']} ({row['broker']}): {row['by_rule']}"
        for row in document["rows"]
        if not (row["right"] and row["apart"])
    ]
    for row in document["rows"]:
        if row["polls"] is None or row["polls"] > _IN_TIME:
            seen = "; ".join(f"poll {poll}: {counts or 'nothing'}" for poll, counts in row["changes"])
            text.append(f"counted late, {row['kind']} ({row['broker']}): {seen}")
    text += [f"healthy shop: {name}" for name in document["false"]]
    text += restart_lines(document["restarts"])
    return [*text, "", *(Goal(**goal).line() for goal in document["goals"])]


BENCH = Bench(
    name="ledger",
    room="diagnosis",
    shows="messages lost in known ways and numbers: what diagnosis counts and names",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3", "--healthy", "0.5"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
