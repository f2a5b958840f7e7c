"""pub-no-confirms: a publisher without confirms; everything else is healthy.

Source: https://www.rabbitmq.com/docs/publishers#data-safety
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-no-confirms"
_RATE = 20.0


def inject(fault: Fault) -> None:
    """Publish without confirms at a constant rate; consume and ack."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("fault-pub-no-confirms").channel()
    consumer = fault.connect("fault-pub-no-confirms-consumer").channel()
    consumer.basic_qos(prefetch_count=50)
    consumer.basic_consume(QUEUE, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publisher.basic_publish("", QUEUE, b"no-confirms", BasicProperties(delivery_mode=PERSISTENT))
        if not announced:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="pub-no-confirms",
    rule="pub-no-confirms",
    summary="a publisher sends 20 messages/s without confirms to a durable queue",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
)
