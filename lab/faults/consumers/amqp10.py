"""Consumers that use AMQP 1.0: they hold messages and settle none, stop after some, or ask for none."""

from collections.abc import Callable
from typing import Any

from ackscope.findings import Subject
from lab.amqp10 import NativeClient
from lab.faults.fault import Fault, FaultSpec

_RATE = 5.0
_ASKED = 10
_BROKERS = ("4.3",)
"""4.0 does not report sessions, so nothing can be found there."""


def _hold(
    name: str, *, held: int, queue_type: str = "quorum", settled: int = 0, **consume: Any
) -> Callable[[Fault], None]:
    """Return an injection: a publisher, and a consumer that settles the first messages, and then none.

    Args:
        name: name of the fault.
        held: how many messages it holds, or are ready, when the fault is in effect.
        queue_type: type of the queue.
        settled: how many messages it settles first.
        **consume: arguments of `NativeClient`.
    """

    def inject(fault: Fault) -> None:
        queue = f"fault.{name}"
        fault.make_queue(queue, {"x-queue-type": queue_type})
        left = [settled]

        def take(unsettled: int) -> int:
            now = min(unsettled, left[0])
            left[0] -= now
            return now

        consumer = NativeClient(fault.address, f"fault-{name}", queue, take=take, **consume)
        fault.later(consumer.close)
        publisher = NativeClient(fault.address, f"fault-{name}-publisher", queue, rate=_RATE)
        fault.later(publisher.close)
        announced = False
        for _ in fault.ticks(0.5):
            got = consumer.received - settled if consume["credit"] else _ready(fault, queue)
            if not announced and got >= held:
                fault.announce()
                announced = True

    return inject


def _ready(fault: Fault, queue: str) -> int:
    found = fault.ask("GET", "/api/queues")
    return next((each.get("messages_ready", 0) for each in found if each["name"] == queue), 0)


def _spec(name: str, rule: str, summary: str, inject: Callable[[Fault], None], **more: Any) -> FaultSpec:
    subject = Subject(kind="queue", name=f"fault.{name}")
    return FaultSpec(name=name, rule=rule, summary=summary, subject=subject, inject=inject, brokers=_BROKERS, **more)


SPECS = (
    _spec(
        "amqp10-never-settles",
        "stuck-consumer",
        "an AMQP 1.0 consumer renews its credit with each message and settles none of them",
        _hold("amqp10-never-settles", held=30, credit=_ASKED, renew=True),
    ),
    _spec(
        "amqp10-credit-used-up",
        "stuck-consumer",
        "an AMQP 1.0 consumer of a classic queue settles 15 messages, then holds the 10 that it has credit for",
        _hold("amqp10-credit-used-up", held=_ASKED, queue_type="classic", settled=15, credit=_ASKED + 15, renew=False),
    ),
    _spec(
        "amqp10-no-credit",
        "consumer-without-credit",
        "an AMQP 1.0 consumer attaches and gives no credit; publishing continues at 5 messages/s",
        _hold("amqp10-no-credit", held=20, credit=0),
    ),
)
