"""pub-missing-exchange: a publisher to an exchange that does not exist loses its channel at each publish (404).

Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.closing_loop import publish_in_vain

EXCHANGE = "fault.nowhere"


def inject(fault: Fault) -> None:
    """Publish to an exchange that was never declared."""
    publish_in_vain(fault, fault.connect("fault-pub-missing-exchange"), EXCHANGE, b"missing-exchange" * 4, rate=4.0)


SPEC = FaultSpec(
    name="pub-missing-exchange",
    rule="pub-missing-exchange",
    summary="a client publishes to a missing exchange 4 times a second, loses its channel each time and reopens it",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    # In two polls, `ackscope diagnose` sees too few cycles to identify the error, and reports channel-churn.
    one_shot=False,
)
