"""pub-credit-flow: a publisher sends as fast as it can to a quorum queue that is limited to 1,000 messages.

Source: https://www.rabbitmq.com/docs/flow-control
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-credit-flow"
_BODY = b"x" * 2000
_TURN = 100
_LOOKS = 2


def inject(fault: Fault) -> None:
    """Publish without confirms, so that only the broker limits the rate."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-max-length": 1000})
    channel = fault.connect("fault-pub-credit-flow").channel()
    properties = BasicProperties(delivery_mode=PERSISTENT)
    seen = 0
    for turn, _ in enumerate(fault.ticks(0.001)):
        for _ in range(_TURN):
            channel.basic_publish("", QUEUE, _BODY, properties)
        if seen < _LOOKS and turn % 50 == 49 and _throttled(fault):
            seen += 1
            if seen == _LOOKS:
                fault.announce()


def _throttled(fault: Fault) -> bool:
    return any(channel.get("state") == "flow" for channel in fault.ask("GET", "/api/channels"))


SPEC = FaultSpec(
    name="pub-credit-flow",
    rule="pub-credit-flow",
    summary="a publisher sends as fast as it can to a quorum queue and is constantly throttled (flow)",
    subject=Subject(kind="node", name=""),
    inject=inject,
    alone=True,
    also=("pub-no-confirms", "cpu-saturation", "maxlen-drop-head", "no-consumer", "hot-queue", "slow-disk"),
)
