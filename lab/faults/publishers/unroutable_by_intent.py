"""Forms of pub-unroutable-dropped: messages that were meant for a queue, and never reached one.

Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from typing import Any

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.cluster.shovels import PLUGINS, shovel
from lab.faults.fault import Fault, FaultSpec

HEADERS, NAMED, MOVED = "fault.headers-never-match", "fault.queue-name-wrong", "fault.shovel-routes-nowhere"
ALTERNATE, ONWARD = "fault.alternate-loses", "fault.bound-to-dead-end"
COPIED, MATCHED = "fault.copies-hide-loss", "fault.headers-partly-match"
_BOUND = {"invoices": {"kind": "invoice", "region": "eu"}, "receipts": {"kind": "receipt", "region": "eu"}}
_SENT = (*_BOUND.values(), {"kind": "invoice", "region": "uk"})


def _publish(fault: Fault, name: str, rate: float, exchange: str, key: str, **properties: Any) -> None:
    # Different rates tell which publisher loses at which exchange.
    channel = fault.connect(f"{name}-publisher".replace(".", "-")).channel()
    channel.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / rate)):
        publish(channel, key, exchange=exchange, **properties)
        if number == 1:
            fault.announce()


def _exchange(fault: Fault, name: str, kind: str, **arguments: str) -> None:
    with fault.briefly(f"{name}.setup") as channel:
        channel.exchange_declare(
            name, kind, durable=True, arguments={key.replace("_", "-"): value for key, value in arguments.items()}
        )
        fault.later(lambda: _delete(fault, name))


def _delete(fault: Fault, name: str) -> None:
    with fault.briefly(f"{name}.cleanup") as channel:
        channel.exchange_delete(name)


def _wrong_type(fault: Fault) -> None:
    fault.make_queue(HEADERS)
    _exchange(fault, HEADERS, "headers")
    with fault.briefly(f"{HEADERS}.bind") as channel:
        channel.queue_bind(HEADERS, HEADERS, "", arguments={"x-match": "all", "pages": "2"})
    _publish(fault, HEADERS, 5.0, HEADERS, "", headers={"pages": 2})


def _wrong_name(fault: Fault) -> None:
    fault.make_queue(NAMED)
    _publish(fault, NAMED, 9.0, "", f"{NAMED}s")


def _to_alternate(fault: Fault) -> None:
    """Its queue is bound to the alternate exchange by another key than the messages have."""
    rest = f"{ALTERNATE}.rest"
    fault.make_queue(rest)
    _exchange(fault, rest, "direct")
    _exchange(fault, ALTERNATE, "topic", alternate_exchange=rest)
    with fault.briefly(f"{ALTERNATE}.bind") as channel:
        channel.queue_bind(rest, rest, rest)
    _publish(fault, ALTERNATE, 12.0, ALTERNATE, "session.renewed")


def _to_dead_end(fault: Fault) -> None:
    _exchange(fault, f"{ONWARD}.next", "fanout")
    _exchange(fault, ONWARD, "fanout")
    with fault.briefly(f"{ONWARD}.bind") as channel:
        channel.exchange_bind(f"{ONWARD}.next", ONWARD)
    _publish(fault, ONWARD, 7.0, ONWARD, "")


def _by_shovel(fault: Fault) -> None:
    fault.make_queue(MOVED)
    _exchange(fault, MOVED, "topic")
    shovel(fault, MOVED, MOVED, None, exchange=MOVED)
    _publish(fault, MOVED, 15.0, "", MOVED)


def _beside_copies(fault: Fault) -> None:
    """Of each ten messages, six go to both queues, and four have a key that is bound to none."""
    _exchange(fault, COPIED, "direct")
    for part in ("billing", "archive"):
        _serve(fault, COPIED, part, "paid")
    channel = fault.connect(f"{COPIED}-publisher".replace(".", "-")).channel()
    channel.confirm_delivery()
    for number, _ in enumerate(fault.ticks(0.1)):
        publish(channel, "paid" if number % 10 < 6 else "refunded", exchange=COPIED)
        if number == 10:
            fault.announce()


def _by_headers(fault: Fault) -> None:
    """Of each three messages, one has a region that no queue is bound to."""
    _exchange(fault, MATCHED, "headers")
    for part, headers in _BOUND.items():
        _serve(fault, MATCHED, part, "", {"x-match": "all", **headers})
    channel = fault.connect(f"{MATCHED}-publisher".replace(".", "-")).channel()
    for number, _ in enumerate(fault.ticks(1 / 12)):
        publish(channel, "", exchange=MATCHED, headers=_SENT[number % len(_SENT)])
        if number == len(_SENT):
            fault.announce()


def _serve(fault: Fault, exchange: str, part: str, key: str, arguments: dict[str, str] | None = None) -> None:
    """Bind a durable queue to an exchange, and consume from it."""
    name = f"{exchange}.{part}"
    fault.make_queue(name)
    consumer = fault.connect(name.replace(".", "-"))
    consume(consumer, name).queue_bind(name, exchange, key, arguments)


SPECS = (
    FaultSpec(
        name="headers-never-match",
        rule="pub-unroutable-dropped",
        summary="a queue is bound to a headers exchange by a text, and messages have a number: none ever matches",
        subject=Subject(kind="exchange", name=HEADERS),
        inject=_wrong_type,
        one_shot=False,
    ),
    FaultSpec(
        name="queue-name-wrong",
        rule="pub-unroutable-dropped",
        summary="a publisher uses the default exchange with the name of a queue that does not exist",
        subject=Subject(kind="exchange", name=""),
        inject=_wrong_name,
    ),
    FaultSpec(
        name="shovel-routes-nowhere",
        rule="pub-unroutable-dropped",
        summary="a shovel moves messages to an exchange that routes them nowhere: its source has deleted them",
        subject=Subject(kind="exchange", name=MOVED),
        inject=_by_shovel,
        extra=PLUGINS,
    ),
    FaultSpec(
        name="alternate-loses",
        rule="pub-unroutable-dropped",
        summary="an alternate exchange has a queue, bound by another key: what should be kept is lost",
        subject=Subject(kind="exchange", name=ALTERNATE),
        inject=_to_alternate,
        client="fault-alternate-loses-publisher",
    ),
    FaultSpec(
        name="bound-to-dead-end",
        rule="pub-unroutable-dropped",
        summary="an exchange is bound to another exchange, to which no queue is bound",
        subject=Subject(kind="exchange", name=ONWARD),
        inject=_to_dead_end,
        client="fault-bound-to-dead-end-publisher",
    ),
    FaultSpec(
        name="copies-hide-loss",
        rule="pub-unroutable-dropped",
        summary="an exchange copies messages of one key to two queues, and drops those of another key",
        subject=Subject(kind="exchange", name=COPIED),
        inject=_beside_copies,
        client="fault-copies-hide-loss-publisher",
    ),
    FaultSpec(
        name="headers-partly-match",
        rule="pub-unroutable-dropped",
        summary="a headers exchange has two queues, and a third of its publisher's messages matches neither of them",
        subject=Subject(kind="exchange", name=MATCHED),
        inject=_by_headers,
        client="fault-headers-partly-match-publisher",
    ),
)
