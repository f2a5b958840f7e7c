"""Consumers that die again and again: on one message, with automatic acknowledgement, or leaving connections open."""

from collections.abc import Callable

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

_RATE = 5.0
_PROOF = 3


def _die(
    name: str, *, lives: float, pauses: float, prefetch: int, auto_ack: bool, stays: int
) -> Callable[[Fault], None]:
    """Return an injection: a consumer lives for some seconds, settles nothing itself, and comes back after a pause.

    The connection of each `stays`-th life stays open and answers heartbeats; with 0, all are closed.
    """
    queue = f"fault.{name}"

    def inject(fault: Fault) -> None:
        fault.make_queue(queue)
        channel = publisher(fault, f"fault-{name}-publisher")
        publish(channel, queue, prefetch)
        consumer, left_open, changes, due = None, False, 0, 0.0
        for tick, _ in enumerate(fault.ticks(1 / _RATE)):
            publish(channel, queue)
            if tick / _RATE < due:
                if consumer is not None:
                    consumer.process_data_events(time_limit=0)
                continue
            if consumer is None:
                left_open = bool(stays) and (changes + 1) % stays == 0
                consumer = fault.connect(f"fault-{name}") if left_open else connect(fault.address, f"fault-{name}")
                inner = consumer.channel()
                inner.basic_qos(prefetch_count=prefetch)
                inner.basic_consume(queue, lambda *_: None, auto_ack=auto_ack)
                due = tick / _RATE + lives
            else:
                if not left_open:
                    consumer.close()
                consumer, changes = None, changes + 1
                due = tick / _RATE + pauses
            if changes == _PROOF and consumer is None:
                fault.announce()

    return inject


def _spec(
    name: str, rule: str, summary: str, *, also: tuple[str, ...], auto_ack: bool = False,
    lives: float = 4.0, pauses: float = 6.0, prefetch: int = 8, stays: int = 0, client: str = "",
) -> FaultSpec:  # fmt: skip
    inject = _die(name, lives=lives, pauses=pauses, prefetch=prefetch, auto_ack=auto_ack, stays=stays)
    subject = Subject(kind="queue", name=f"fault.{name}")
    return FaultSpec(
        name=name, rule=rule, summary=summary, subject=subject, inject=inject, client=client, also=also, one_shot=False
    )


SPECS = (
    _spec(
        "dies-on-one-message",
        "consumer-flapping",
        "a consumer takes 8 messages, dies after 4 s without an acknowledgement, and comes back 6 s later",
        also=("connection-churn", "no-consumer"),
    ),
    _spec(
        "dies-with-auto-ack",
        "auto-ack-consumer",
        "a consumer with automatic acknowledgement dies every 4 s and comes back 6 s later",
        also=("connection-churn", "consumer-flapping", "no-consumer"),
        auto_ack=True,
    ),
    _spec(
        "zombies-hold-all",
        "stuck-consumer",
        "a consumer dies on its first delivery, again and again; every second old connection stays open and full",
        client="fault-zombies-hold-all",
        also=("connection-churn", "connection-leak", "consumer-flapping"),
        lives=1.0,
        pauses=4.0,
        prefetch=7,
        stays=2,
    ),
)
