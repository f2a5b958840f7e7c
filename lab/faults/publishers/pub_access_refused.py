"""pub-access-refused: a user without write permission loses its channel at each publish (403).

Source: https://www.rabbitmq.com/docs/access-control
"""

from urllib.parse import quote

import pika

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.closing_loop import publish_in_vain

USER = "fault-pub-access-refused"
EXCHANGE = "amq.topic"


def inject(fault: Fault) -> None:
    """Create a user with read permission only, and publish as this user."""
    vhost = quote(fault.address.vhost, safe="")
    fault.ask("PUT", f"/api/users/{USER}", {"password": USER, "tags": ""})
    fault.later(lambda: fault.ask("DELETE", f"/api/users/{USER}"))
    fault.ask("PUT", f"/api/permissions/{vhost}/{USER}", {"configure": "", "write": "", "read": ".*"})
    connection = fault.connect("fault-pub-access-refused", credentials=pika.PlainCredentials(USER, USER))
    publish_in_vain(fault, connection, EXCHANGE, b"access-refused" * 4, rate=4.0)


SPEC = FaultSpec(
    name="pub-access-refused",
    rule="pub-access-refused",
    summary="a user without write permission publishes 4 times a second and loses its channel each time",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    # In two polls, `ackscope diagnose` sees too few cycles to identify the error, and reports channel-churn.
    one_shot=False,
)
