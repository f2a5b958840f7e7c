"""mixed-connection: a memory alarm blocks a connection that also consumes: its acks are not processed.

Source: https://www.rabbitmq.com/docs/alarms#effects-on-clusters
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.alarm import publish_into_alarm

QUEUE = "fault.mixed-connection"
CLIENT = "fault-mixed-connection"


def inject(fault: Fault) -> None:
    """Publish and consume on one connection, raise the alarm, publish some more."""
    fault.make_queue(QUEUE)
    connection = fault.connect(CLIENT)
    publisher, consumer = connection.channel(), connection.channel()
    consumer.basic_qos(prefetch_count=5)
    consumer.basic_consume(QUEUE, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    publisher.basic_publish("", QUEUE, b"before", BasicProperties(delivery_mode=PERSISTENT))
    publish_into_alarm(fault, publisher, QUEUE, CLIENT)


SPEC = FaultSpec(
    name="mixed-connection",
    rule="mixed-connection",
    summary="a memory alarm blocks a connection that publishes and consumes: its acks are not processed",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
    alone=True,
    also=("memory-alarm", "pub-blocked-by-alarm"),
)
