"""pub-blocked-by-alarm: a memory alarm blocks the connection of a publisher that continues.

Source: https://www.rabbitmq.com/docs/alarms
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.alarm import publish_into_alarm

QUEUE = "fault.pub-blocked-by-alarm"
CLIENT = "fault-pub-blocked-by-alarm"


def inject(fault: Fault) -> None:
    """Publish, raise the alarm, publish some more, which stays in the socket buffer."""
    fault.make_queue(QUEUE, {"x-max-length": 1000})
    connection = fault.connect(CLIENT)
    channel = connection.channel()
    consumer = fault.connect(f"{CLIENT}-consumer").channel()
    consumer.basic_qos(prefetch_count=50)
    consumer.basic_consume(QUEUE, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    channel.basic_publish("", QUEUE, b"before", BasicProperties(delivery_mode=PERSISTENT))
    publish_into_alarm(fault, channel, QUEUE, CLIENT)


SPEC = FaultSpec(
    name="pub-blocked-by-alarm",
    rule="memory-alarm",
    summary="a memory alarm blocks a publishing connection",
    subject=Subject(kind="node", name=""),
    inject=inject,
    alone=True,
    also=("pub-blocked-by-alarm",),
)
