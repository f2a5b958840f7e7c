"""Helper of faults with unroutable messages: an exchange routes for a while, then loses its binding."""

from contextlib import suppress

from pika import BasicProperties
from pika.exceptions import UnroutableError

from lab.amqp import PERSISTENT
from lab.faults.fault import Fault

_KEY = "key"
_ROUTED = 20


def lose_binding(fault: Fault, name: str, *, mandatory: bool, rate: float) -> None:
    """Publish to a new exchange, unbind its queue after some messages, and continue to publish.

    The queue has a consumer, so that it causes no finding itself.
    """
    fault.make_queue(name)
    with fault.briefly(f"{name}.setup") as channel:
        channel.exchange_declare(name, "direct", durable=True)
        fault.later(lambda: _delete(fault, name))
        channel.queue_bind(name, name, _KEY)
    consumer = fault.connect(f"{name}-consumer").channel()
    consumer.basic_qos(prefetch_count=50)
    consumer.basic_consume(name, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    publisher = fault.connect(f"{name}-publisher").channel()
    publisher.confirm_delivery()
    for _ in range(_ROUTED):
        publisher.basic_publish(name, _KEY, b"routed", BasicProperties(delivery_mode=PERSISTENT), mandatory=True)
    consumer.queue_unbind(name, name, _KEY)
    announced = False
    for _ in fault.ticks(1 / rate):
        # With mandatory the broker returns the message; without, it confirms it nevertheless.
        with suppress(UnroutableError):
            publisher.basic_publish(
                name, _KEY, b"unroutable", BasicProperties(delivery_mode=PERSISTENT), mandatory=mandatory
            )
        if not announced:
            fault.announce()
            announced = True


def _delete(fault: Fault, name: str) -> None:
    with fault.briefly(f"{name}.cleanup") as channel:
        channel.exchange_delete(name)
