"""Planted losses with known counts: what diagnosis counts, which cause it names, and what it says of a healthy shop."""

import argparse
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.address import Address
from bench.bench import Bench, Document, progress
from bench.diagnosis.scene import FindingDocument, Scene, flat, scene
from bench.exporter.goals import Goal
from bench.tables import table
from lab.amqp import PERSISTENT, connect, parse_lab_address, publish
from lab.brokers import SUITES
from lab.decoys import DECOYS

_SETTLED, _COUNTED = 12.0, 40.0
"""Seconds until the statistics show a new queue in two polls, and seconds in which a loss must be counted."""
_RATE = 20.0
_COUNTS = ("lost", "dropped", "purged", "refused", "missing")
"""Facts with the number of lost messages, by rule; the first that a finding has counts."""
_LOSSES = ("reject-loss", "queue-purged", "unexplained-loss", "poison-drop", "ttl-expiry-loss", "maxlen-drop-head")

Settle = Callable[[BlockingChannel, Any], None]


def _reject(channel: BlockingChannel, method: Any) -> None:
    channel.basic_reject(method.delivery_tag, requeue=False)


def _nack_several(channel: BlockingChannel, method: Any) -> None:
    if method.delivery_tag % 5 == 0:
        channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)


def _requeue(channel: BlockingChannel, method: Any) -> None:
    channel.basic_reject(method.delivery_tag, requeue=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossKind:
    """One kind of loss.

    Attributes:
        rules: rules that name it.
        arguments: of its queue.
        settle: what its consumer does with each message; None without a consumer.
        gets: it polls instead of consuming.
        expires: expiration of each message, ms; "" for none.
        purges: the queue is purged at the end.
        stays: messages of those published that are not lost.
    """

    name: str
    rules: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settle: Settle | None = None
    gets: bool = False
    expires: str = ""
    purges: bool = False
    stays: int = 0
    brokers: tuple[str, ...] = tuple(SUITES)


_QUORUM = {"x-queue-type": "quorum"}
_POISON = ("poison-drop",)
_BEFORE = ("unexplained-loss", "ttl-expiry-loss", "queue-purged")

KINDS: tuple[LossKind, ...] = (
    LossKind(name="reject", rules=("reject-loss",), settle=_reject),
    LossKind(name="reject, quorum", rules=("reject-loss",), arguments=_QUORUM, settle=_reject),
    LossKind(name="nack of five at once", rules=("reject-loss",), settle=_nack_several),
    LossKind(name="get and reject", rules=("reject-loss",), settle=_reject, gets=True),
    LossKind(name="TTL of the queue", rules=("ttl-expiry-loss",), arguments={"x-message-ttl": 1000}),
    LossKind(name="TTL, quorum", rules=("ttl-expiry-loss",), arguments={**_QUORUM, "x-message-ttl": 1000}),
    LossKind(name="expiration of messages", rules=_BEFORE, expires="1000"),
    LossKind(name="drop at a limit", rules=("maxlen-drop-head",), arguments={"x-max-length": 50}, stays=50),
    LossKind(
        name="drop at a limit, quorum",
        rules=("maxlen-drop-head",),
        arguments={**_QUORUM, "x-max-length": 50},
        stays=50,
    ),
    LossKind(name="purge", rules=("queue-purged",), purges=True),
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


@dataclass(slots=True, kw_only=True)
class LossRow:
    """Result of one kind.

    Attributes:
        planted: messages that were lost.
        counted: messages that the findings about the queue count; None without a finding.
        rules: rules of these findings.
        right: whether a rule of this kind is among them.
        seconds: from the last lost message until the count was within 2 % of the truth; None if it never was.
    """

    broker: str
    kind: str
    planted: int
    counted: int | None = None
    rules: list[str] = field(default_factory=list)
    right: bool = False
    seconds: float | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the counts (7)")
    parser.add_argument("--healthy", type=float, default=2.0, help="minutes of the healthy shop with restarts (2)")


def measure(args: argparse.Namespace) -> Document:
    """Plant each kind in a queue of its own, all at once; then watch a healthy shop."""
    rows: list[LossRow] = []
    false: list[str] = []
    draw = random.Random(args.seed)  # noqa: S311  draws counts, guards nothing
    for broker in args.broker:
        with scene(broker) as stage:
            progress(f"{stage.lab.broker}: the healthy shop for {args.healthy:g} minutes")
            false += _healthy(stage, args.healthy)
            kinds = [kind for kind in KINDS if broker in kind.brokers]
            progress(f"{stage.lab.broker}: {len(kinds)} kinds of loss at once")
            rows += _planted(stage, kinds, draw)
    found = [row for row in rows if row.right]
    exact = [row for row in rows if row.seconds is not None]
    goals = [
        Goal("kinds that no finding names", len(rows) - len(found), 0),
        Goal("kinds counted wrong by more than 2 %", len(rows) - len(exact), 0),
        Goal("losses reported in the healthy shop", len(false), 0),
    ]
    return {"rows": [asdict(row) for row in rows], "false": false, "goals": [goal.as_dict() for goal in goals]}


def _healthy(stage: Scene, minutes: float) -> list[str]:
    """Return the losses that are reported while consumers are restarted and queues are drained."""
    reported: set[str] = set()
    with ExitStack() as stack:
        for name in ("decoy.deploy-restart", "decoy.burst"):
            stack.enter_context(stage.held(DECOYS[name]))
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            for finding, _ in flat(stage.findings()):
                if finding["rule"] in _LOSSES:
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
    rows = {
        each.queue: LossRow(broker=stage.lab.broker, kind=each.kind.name, planted=each.number - each.kind.stays)
        for each in planting
    }
    ended = {each.queue: each.ended for each in planting}
    rules = {each.queue: each.kind.rules for each in planting}
    until = time.monotonic() + _COUNTED
    while time.monotonic() < until and any(row.seconds is None for row in rows.values()):
        found = flat(stage.findings())
        for queue, row in rows.items():
            _count(row, [each for each, _ in found if each["subject"]["name"] == queue], rules[queue], ended[queue])
        time.sleep(0.5)
    for each in planting:
        each.clear()
    for row in rows.values():
        progress(f"  {row.kind}: {row.planted} lost, {row.counted} counted, {', '.join(row.rules) or 'not named'}")
    return list(rows.values())


def _count(row: LossRow, findings: Sequence[FindingDocument], rules: Sequence[str], ended: float) -> None:
    counts = {each["rule"]: _number(each) for each in findings if _number(each) is not None}
    if not counts:
        return
    row.rules, row.counted = sorted(counts), sum(count or 0 for count in counts.values())
    row.right = any(rule in counts for rule in rules)
    if row.seconds is None and abs(row.counted - row.planted) <= max(1, 0.02 * row.planted):
        row.seconds = time.monotonic() - ended


def _number(finding: FindingDocument) -> int | None:
    if finding["rule"] not in _LOSSES:
        return None
    return next((finding["facts"][name] for name in _COUNTS if name in finding["facts"]), None)


class _Planting(threading.Thread):
    """Publishes a number of messages to a queue, which loses them in one way.

    Attributes:
        queue: its name.
        ended: when the last message was published, monotonic clock.
    """

    def __init__(self, address: Address, kind: LossKind, number: int) -> None:
        super().__init__(daemon=True)
        self.kind, self.number = kind, number
        self.queue = f"ledger.{kind.name.replace(' ', '-').replace(',', '')}"
        self.ended = 0.0
        self._address = address

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
            consumer.basic_consume(self.queue, lambda inner, method, *_: settle(inner, method))
        self._serve(connection, consuming, _SETTLED)
        channel.confirm_delivery()
        number = self.number - self.number % 5 if settle is _nack_several else self.number
        self.number = number
        for _ in range(number):
            properties: dict[str, Any] = {"delivery_mode": PERSISTENT}
            if self.kind.expires:
                properties["expiration"] = self.kind.expires
            publish(channel, self.queue, **properties)
            self._serve(connection, consuming, 1 / _RATE)
            if self.kind.gets and settle is not None:
                method, _properties, _body = consumer.basic_get(self.queue)
                if method is not None:
                    settle(consumer, method)
        if self.kind.purges:
            self._serve(connection, consuming, _SETTLED)
            channel.queue_purge(self.queue)
        self._serve(connection, consuming, 2.0)
        self.ended = time.monotonic()
        self._connections = (connection, consuming)

    def clear(self) -> None:
        """Delete the queue and close the connections."""
        for connection in self._connections:
            connection.close()
        connection = connect(self._address, f"{self.queue}-cleanup")
        connection.channel().queue_delete(self.queue)
        connection.close()

    @staticmethod
    def _serve(connection: Any, consuming: Any, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            connection.process_data_events(time_limit=0)
            consuming.process_data_events(time_limit=min(left, 0.05))


def lines(document: Document) -> list[str]:
    """Return a table with one row per kind, then what was reported of the healthy shop."""
    rows = [
        (
            row["broker"],
            row["kind"],
            str(row["planted"]),
            "-" if row["counted"] is None else str(row["counted"]),
            "-" if row["seconds"] is None else f"{row['seconds']:.0f} s",
            "yes" if row["right"] else ", ".join(row["rules"])[:20] or "no",
        )
        for row in document["rows"]
    ]
    text = table(("", "kind", "lost", "counted", "after", "named"), rows)
    text += [f"healthy shop: {name}" for name in document["false"]]
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
