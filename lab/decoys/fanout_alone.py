"""Events without a subscriber: the exchange never had a binding, so no message is missing anywhere."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

EXCHANGE = "fault.decoy.events"


def inject(fault: Fault) -> None:
    """Publish two events a second to a fanout exchange that was never bound."""

    def remove() -> None:
        with fault.briefly("decoy-fanout-cleanup") as channel:
            channel.exchange_delete(EXCHANGE)

    channel = fault.connect("decoy-fanout-publisher").channel()
    channel.exchange_declare(EXCHANGE, "fanout", durable=True)
    fault.later(remove)
    for number, _ in enumerate(fault.ticks(0.5)):
        publish(channel, "", exchange=EXCHANGE)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.fanout-alone",
    rule="",
    summary="events are published to a fanout exchange that never had a binding",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
)
