"""pub-unroutable-dropped: an auto-delete queue goes with its consumer, which restarts again and again.

Source: https://www.rabbitmq.com/docs/queues#temporary-queues
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pika.exceptions import NackError

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.decoys.traffic import consume
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

# Its 404 must not be as long as that of "fault.nowhere", the exchange that pub-missing-exchange publishes to.
NAME = "fault.queue-is-away"
EVENTS = "fault.subscriber-comes-and-goes"


def _restarts(
    client: str, name: str, kind: str, *, rate: int, cycle: int, away: tuple[int, ...], proof: int, durable: bool
) -> Callable[[Fault], None]:
    """Return an injection: a consumer declares and binds its queue in each cycle, and is away at the end of it.

    Args:
        client: name of its connections.
        name: that of the exchange and of the queue.
        kind: type of the exchange.
        rate: messages a second.
        cycle: seconds.
        away: seconds without the queue at the end of each cycle, in turn.
        proof: seconds until the fault is in effect.
        durable: whether the queue is.
    """

    def inject(fault: Fault) -> None:
        with fault.briefly(f"{client}-setup") as setup:
            setup.exchange_declare(name, kind, durable=True)
        fault.later(lambda: _delete(fault, name))
        channel = publisher(fault, f"{client}-publisher")
        for tick, _ in enumerate(fault.ticks(1 / rate)):
            if tick == proof * rate:
                fault.announce()
            lives, age = divmod(tick, cycle * rate)
            stays = (cycle - away[lives % len(away)]) * rate
            if age == 0:
                consumer = connect(fault.address, client)
                own = consumer.channel()
                own.queue_declare(name, durable=durable, auto_delete=True)
                own.queue_bind(name, name, "key")
                consume(consumer, name)
            elif age < stays:
                consumer.process_data_events(time_limit=0)
            elif age == stays:
                consumer.close()
            # What a queue had not confirmed when it went is refused.
            with suppress(NackError):
                publish(channel, "key", exchange=name)

    return inject


def _delete(fault: Fault, name: str) -> None:
    with fault.briefly("fault-queue-away-cleanup") as channel:
        channel.queue_delete(name)
        channel.exchange_delete(name)


def _spec(name: str, exchange: str, summary: str, kind: str, *, also: tuple[str, ...] = (), **more: Any) -> FaultSpec:
    return FaultSpec(
        name=name,
        rule="pub-unroutable-dropped",
        summary=summary,
        subject=Subject(kind="exchange", name=exchange),
        inject=_restarts(f"fault-{name}", exchange, kind, **more),
        client=f"fault-{name}-publisher",
        also=("consumer-flapping", "queue-deleted", *also),
        one_shot=False,
    )


SPECS = (
    _spec(
        "queue-away",
        NAME,
        "an auto-delete queue is away while its consumer restarts, 6 s of 22, and publishing continues",
        "direct",
        rate=10,
        cycle=22,
        away=(6,),
        proof=22,
        durable=True,
    ),
    _spec(
        "subscriber-comes-and-goes",
        EVENTS,
        "the only queue of a fanout exchange is away with its consumer 6 to 8 s of each 25 s: a quarter is lost",
        "fanout",
        # Two absences may be a deployment with a failed start: three and more show that all events are needed.
        rate=7,
        cycle=25,
        away=(6, 8, 7),
        proof=105,
        durable=False,
        also=("deprecated-features-used",),
    ),
)
