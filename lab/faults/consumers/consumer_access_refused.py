"""consumer-access-refused: a user without read permission loses its channel each time it consumes (403).

Source: https://www.rabbitmq.com/docs/access-control
"""

from urllib.parse import quote

import pika
from pika.exceptions import ChannelClosedByBroker

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

USER = "fault-consumer-access-refused"
QUEUE = "fault.consumer-access-refused"
_RATE = 2.0


def inject(fault: Fault) -> None:
    """Create a user with write permission only, and consume as this user twice a second."""
    vhost = quote(fault.address.vhost, safe="")
    fault.make_queue(QUEUE)
    publisher = fault.connect("fault-consumer-access-refused-publisher").channel()
    fault.ask("PUT", f"/api/users/{USER}", {"password": USER, "tags": ""})
    fault.later(lambda: fault.ask("DELETE", f"/api/users/{USER}"))
    fault.ask("PUT", f"/api/permissions/{vhost}/{USER}", {"configure": "", "write": ".*", "read": ""})
    connection = fault.connect("fault-consumer-access-refused", credentials=pika.PlainCredentials(USER, USER))
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(publisher, QUEUE)
        channel = connection.channel()
        try:
            channel.basic_consume(QUEUE, lambda *_: None)
        except ChannelClosedByBroker:
            if not announced:
                fault.announce()
                announced = True
        if channel.is_open:
            channel.close()


SPEC = FaultSpec(
    name="consumer-access-refused",
    rule="consumer-access-refused",
    summary="a user without read permission consumes twice a second and loses its channel each time",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    also=("no-consumer", "orphan-queue"),
    apart=True,
    # In two polls, `ackscope diagnose` sees too few cycles to identify the error, and reports channel-churn.
    one_shot=False,
)
