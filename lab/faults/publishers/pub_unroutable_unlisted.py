"""pub-unroutable-unlisted: a script connects every 2 s, publishes 10 messages without a route, and exits."""

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.fault import Fault, FaultSpec

EXCHANGE = "fault.pub-unroutable-unlisted"
_EVERY, _EACH, _PROOF = 2.0, 10, 5


def inject(fault: Fault) -> None:
    """Publish to a direct exchange without bindings, each time on a connection of its own."""
    fault.make_exchange(EXCHANGE)
    for number, _ in enumerate(fault.ticks(_EVERY)):
        connection = connect(fault.address, "fault-pub-unroutable-unlisted")
        publish(connection.channel(), "order", _EACH, exchange=EXCHANGE)
        connection.close()
        if number == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="pub-unroutable-unlisted",
    rule="pub-unroutable-unlisted",
    summary="a client that is too brief to be listed publishes messages without a route",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    also=("connection-churn",),
    apart=True,
)
