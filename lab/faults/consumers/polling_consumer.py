"""polling-consumer: a client polls an almost empty queue 50 times a second (basic.get).

Source: https://www.rabbitmq.com/docs/consumers#polling
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.polling-consumer"
_RATE = 50.0
_PROOF = 50


def inject(fault: Fault) -> None:
    """Publish once a second, and poll 50 times a second."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-polling-consumer-publisher")
    poller = fault.connect("fault-polling-consumer").channel()
    empty, announced = 0, False
    for asked, _ in enumerate(fault.ticks(1 / _RATE)):
        if asked % round(_RATE) == 0:
            publish(channel, QUEUE)
        method, _properties, _body = poller.basic_get(QUEUE, auto_ack=True)
        empty += method is None
        if not announced and empty >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="polling-consumer",
    rule="polling-consumer",
    summary="a client polls a queue with basic.get 50 times a second and gets one message a second",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
