"""pub-property-refused: messages name another user than the one that logged in, so the broker closes the channel (406).

Source: https://www.rabbitmq.com/docs/validated-user-id
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.closing_loop import publish_in_vain

QUEUE = "fault.pub-property-refused"


def inject(fault: Fault) -> None:
    """Publish to the default exchange with the user_id of the account that the application had before."""
    fault.make_queue(QUEUE)
    connection = fault.connect("fault-pub-property-refused")
    publish_in_vain(fault, connection, "", b"property-refused" * 40, rate=3.0, user_id="billing-2024")


SPEC = FaultSpec(
    name="pub-property-refused",
    rule="pub-property-refused",
    summary="a client publishes 3 times a second with a user_id that is not its user, and loses its channel each time",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    one_shot=False,
)
