"""pub-unroutable-dropped: an auto-delete queue goes with its consumer, which restarts again and again.

Source: https://www.rabbitmq.com/docs/queues#temporary-queues
"""

from contextlib import suppress

from pika.exceptions import NackError

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.decoys.traffic import consume
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

# Its 404 must not be as long as that of "fault.nowhere", the exchange that pub-missing-exchange publishes to.
NAME = "fault.queue-is-away"
_RATE, _STAYS, _AWAY = 10, 160, 60
"""Messages a second, and ticks for which the consumer is there and away."""


def inject(fault: Fault) -> None:
    """Publish 10 messages a second; the consumer declares and binds its queue, and is away for 6 s of 22."""
    with fault.briefly("fault-queue-away-setup") as setup:
        setup.exchange_declare(NAME, "direct", durable=True)
    fault.later(lambda: _delete(fault))
    channel = publisher(fault, "fault-queue-away-publisher")
    for tick, _ in enumerate(fault.ticks(1 / _RATE)):
        lives, age = divmod(tick, _STAYS + _AWAY)
        if age == 0:
            consumer = connect(fault.address, "fault-queue-away")
            own = consumer.channel()
            own.queue_declare(NAME, durable=True, auto_delete=True)
            own.queue_bind(NAME, NAME, "key")
            consume(consumer, NAME)
            if lives == 1:
                fault.announce()
        elif age < _STAYS:
            consumer.process_data_events(time_limit=0)
        elif age == _STAYS:
            consumer.close()
        # What a queue had not confirmed when it went is refused.
        with suppress(NackError):
            publish(channel, "key", exchange=NAME)


def _delete(fault: Fault) -> None:
    with fault.briefly("fault-queue-away-cleanup") as channel:
        channel.queue_delete(NAME)
        channel.exchange_delete(NAME)


SPEC = FaultSpec(
    name="queue-away",
    rule="pub-unroutable-dropped",
    summary="an auto-delete queue is away while its consumer restarts, 6 s of 22, and publishing continues",
    subject=Subject(kind="exchange", name=NAME),
    inject=inject,
    client="fault-queue-away-publisher",
    also=("consumer-flapping", "queue-deleted"),
    one_shot=False,
)
