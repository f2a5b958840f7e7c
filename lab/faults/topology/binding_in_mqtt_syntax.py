"""binding-in-mqtt-syntax: a queue is bound with the topic filter of MQTT, while an MQTT client publishes."""

from ackscope.findings import Subject
from lab.faults.consumers.native_spec import native_spec
from lab.faults.fault import Fault
from lab.native import MqttClient, listener

NAME = "fault.binding-in-mqtt-syntax"
_EXCHANGE = "amq.topic"


def inject(fault: Fault) -> None:
    """Bind a queue to `fault-plant/+/temp`, and publish 15 messages a second to `fault-plant/7/temp`."""
    fault.make_queue(NAME)
    channel = fault.connect("fault-binding-in-mqtt-syntax-consumer").channel()
    channel.queue_bind(NAME, _EXCHANGE, "fault-plant/+/temp")
    channel.basic_consume(NAME, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    client = MqttClient(fault.address, listener(fault.ask, "mqtt", fault.control), "fault-binding-in-mqtt-syntax")
    fault.later(client.close)
    fault.announce()
    for _ in fault.ticks(1 / 15):
        client.publish("fault-plant/7/temp")


SPEC = native_spec(
    "binding-in-mqtt-syntax",
    "binding-in-mqtt-syntax",
    'a queue is bound with "+" and "/", and an MQTT client publishes 15 messages a second to such a topic',
    NAME,
    inject,
    subject=Subject(kind="exchange", name=_EXCHANGE),
    protocol="MQTT",
    # A client counts as a publisher once it has been connected for some time.
    one_shot=False,
)
