"""Consumers that use AMQP 1.0: they hold messages, settle them slowly or not as accepted, or ask for none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ackscope.findings import Subject
from lab.amqp10 import NativeClient, of_queue, paced
from lab.faults.fault import Fault, FaultSpec

_RATE = 5.0
_ASKED = 10
_QUICK = 100.0
_BROKERS = ("4.0", "4.3")


@dataclass(frozen=True, slots=True)
class _Proof:
    """The fault is in effect once the consumers got so many messages, and so many are ready."""

    received: int = 0
    ready: int = 0


def _consume(
    name: str,
    proof: _Proof,
    *roles: dict[str, Any],
    rate: float = _RATE,
    arguments: dict[str, object] | None = None,
) -> Callable[[Fault], None]:
    """Return an injection: a publisher at 5 messages/s, and one consumer for each role.

    Args:
        name: name of the fault.
        proof: when it is in effect.
        *roles: what each consumer does; see `lab.amqp10.Role`. `settled` is how many it settles
            at all, and `settles` how many per second.
        rate: messages published per second.
        arguments: those of the queue; a quorum queue without.
    """

    def inject(fault: Fault) -> None:
        queue = f"fault.{name}"
        fault.make_queue(queue, {"x-queue-type": "quorum", **(arguments or {})})
        consumers = []
        for number, role in enumerate(roles):
            own = {**role, "take": _first(role["settled"])} if "settled" in role else role
            own = {**own, "take": paced(own["settles"])} if "settles" in own else own
            own = {key: value for key, value in own.items() if key not in {"settled", "settles"}}
            container = f"fault-{name}{f'-{number}' if number else ''}"
            consumers.append(NativeClient(fault.address, container, of_queue(queue), **own))
            fault.later(consumers[-1].close)
        fault.culprits.append(consumers[0])
        publisher = NativeClient(fault.address, f"fault-{name}-publisher", of_queue(queue), rate=rate)
        fault.later(publisher.close)
        announced = False
        for _ in fault.ticks(0.5):
            received = sum(each.received for each in consumers)
            if not announced and received >= proof.received and _ready(fault, queue) >= proof.ready:
                fault.announce()
                announced = True

    return inject


def _first(settled: int) -> Callable[[int], int]:
    """Return a `take` that settles the first messages, and then none."""
    left = [settled]

    def take(unsettled: int) -> int:
        now = min(unsettled, left[0])
        left[0] -= now
        return now

    return take


def _ready(fault: Fault, queue: str) -> int:
    with fault.briefly(f"{queue}.look") as channel:
        return int(channel.queue_declare(queue, passive=True).method.message_count)


def _spec(name: str, rule: str, summary: str, inject: Callable[[Fault], None], **more: Any) -> FaultSpec:
    subject = Subject(kind="queue", name=f"fault.{name}")
    return FaultSpec(
        name=name,
        rule=rule,
        summary=summary,
        inject=inject,
        **{
            "subject": subject,
            "protocol": "AMQP 1.0",
            "brokers": _BROKERS,
            "also": ("quorum-queue-without-dlx",),
            **more,
        },
    )


SPECS = (
    _spec(
        "amqp10-never-settles",
        "stuck-consumer",
        "an AMQP 1.0 consumer renews its credit with each message and settles none of them",
        _consume("amqp10-never-settles", _Proof(received=30), {"credit": _ASKED, "renew": "received"}),
    ),
    _spec(
        "amqp10-credit-used-up",
        "stuck-consumer",
        "an AMQP 1.0 consumer of a classic queue settles 15 messages, then holds the 10 that it has credit for",
        _consume(
            "amqp10-credit-used-up",
            _Proof(received=_ASKED + 15),
            {"credit": _ASKED + 15, "settled": 15},
            arguments={"x-queue-type": "classic"},
        ),
    ),
    _spec(
        "amqp10-one-of-three-holds",
        "stuck-consumer",
        "one of three AMQP 1.0 consumers of a queue holds the 10 messages that it asked for, the others settle theirs",
        _consume(
            "amqp10-one-of-three-holds",
            _Proof(received=4 * _ASKED),
            {"credit": _ASKED},
            *({"credit": _ASKED, "renew": "settled", "settles": _QUICK} for _ in range(2)),
            rate=2 * _RATE,
        ),
        # 4.0 reports no session, so what one of several consumers holds looks like work in progress.
        brokers=("4.3",),
        unsure=("4.0",),
        one_shot=False,
    ),
    _spec(
        "amqp10-no-credit",
        "consumer-without-credit",
        "an AMQP 1.0 consumer attaches and gives no credit; publishing continues at 5 messages/s",
        _consume("amqp10-no-credit", _Proof(ready=20), {"credit": 0}),
    ),
    _spec(
        "amqp10-slow",
        "slow-consumer",
        "an AMQP 1.0 consumer settles 2 messages/s of the 10/s that are published",
        _consume(
            "amqp10-slow",
            _Proof(received=2 * _ASKED, ready=20),
            {"credit": _ASKED, "renew": "settled", "settles": 2.0},
            rate=2 * _RATE,
        ),
    ),
    _spec(
        "amqp10-rejects",
        "reject-loss",
        "an AMQP 1.0 consumer rejects every message of a queue without a dead-letter exchange",
        _consume(
            "amqp10-rejects",
            _Proof(received=20),
            {"credit": _ASKED, "renew": "settled", "settles": _QUICK, "outcome": "rejected"},
        ),
    ),
    _spec(
        "amqp10-releases",
        "requeue-loop",
        "an AMQP 1.0 consumer releases every message, and gets the same ones again 50 times a second",
        _consume(
            "amqp10-releases",
            _Proof(received=150),
            {"credit": _ASKED, "renew": "settled", "settles": 50.0, "outcome": "released"},
        ),
        # Up to 4.2 a released message counts towards the delivery limit, which is 20 by default.
        also=("quorum-queue-without-dlx", "poison-drop"),
        one_shot=False,
    ),
    _spec(
        "amqp10-modifies",
        "poison-drop",
        "an AMQP 1.0 consumer says of every delivery that it failed; the queue drops each message after 3 redeliveries",
        _consume(
            "amqp10-modifies",
            _Proof(received=100),
            {"credit": _ASKED, "renew": "settled", "settles": _QUICK, "outcome": "modified"},
            arguments={"x-delivery-limit": 3},
        ),
        also=("requeue-loop", "quorum-queue-without-dlx"),
        one_shot=False,
    ),
    _spec(
        "amqp10-presettled",
        "auto-ack-consumer",
        "an AMQP 1.0 consumer of a durable queue asks for messages that count as settled when they are sent",
        _consume("amqp10-presettled", _Proof(received=20), {"credit": _ASKED, "renew": "settled", "presettled": True}),
        subject=Subject(kind="vhost", name=""),
    ),
)
