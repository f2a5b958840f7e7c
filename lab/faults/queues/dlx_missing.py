"""dlx-missing: the dead-letter exchange of a queue does not exist, and its consumer rejects half of the messages.

Source: https://www.rabbitmq.com/docs/dlx#routing
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import rejecter, writer

QUEUE = "fault.dlx-missing"
EXCHANGE = "fault.dlx-missing.gone"
_RATE, _PROOF = 8.0, 5


OWN_KEY = "fault.dead-letters-own-key"
"""A queue, and its dead-letter exchange."""


def inject(fault: Fault) -> None:
    """Publish and consume; the broker drops the rejected messages."""
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": EXCHANGE})
    _reject(fault, QUEUE, "fault-dlx-missing-consumer")


def _own_key(fault: Fault) -> None:
    fault.make_queue(OWN_KEY, {"x-dead-letter-exchange": OWN_KEY})
    fault.make_queue(f"{OWN_KEY}.dead")
    with fault.briefly(f"{OWN_KEY}.setup") as channel:
        channel.exchange_declare(OWN_KEY, "direct", durable=True)
        fault.later(lambda: _delete(fault))
        channel.queue_bind(f"{OWN_KEY}.dead", OWN_KEY, "dead")
    _reject(fault, OWN_KEY, "fault-dead-letters-own-key-consumer")


def _delete(fault: Fault) -> None:
    with fault.briefly(f"{OWN_KEY}.cleanup") as channel:
        channel.exchange_delete(OWN_KEY)


def _reject(fault: Fault, queue: str, client: str) -> None:
    channel = writer(fault, queue)
    consumer = rejecter(fault, queue, client)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, queue)
        if not announced and consumer.rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dlx-missing",
    rule="dlx-missing",
    summary="the dead-letter exchange of a queue does not exist: messages that its consumer rejects are lost",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
)


KEEPS_KEY = FaultSpec(
    name="dead-letters-own-key",
    rule="dlx-missing",
    summary="dead letters keep their own routing key, and the queue for them is bound with another: they are lost",
    subject=Subject(kind="exchange", name=OWN_KEY),
    inject=_own_key,
    one_shot=False,
)
