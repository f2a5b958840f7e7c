"""pub-oversized-message: a publisher sends more than the broker takes, and loses its channel at each publish (406).

Versions before 4.0 take 128 MiB, and too much memory of a small machine with it: there it is left out.
Source: https://www.rabbitmq.com/docs/configure (max_message_size)
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.closing_loop import publish_in_vain

MIB = 17


def inject(fault: Fault) -> None:
    """Publish 17 MiB where 16 are allowed."""
    body = b"x" * (MIB << 20)
    publish_in_vain(fault, fault.connect("fault-pub-oversized-message"), "amq.fanout", body, rate=0.8)


SPEC = FaultSpec(
    name="pub-oversized-message",
    rule="pub-oversized-message",
    summary="a publisher sends 17 MiB with a limit of 16 MiB, loses its channel and retries",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    brokers=("4.0", "4.3"),
    # Two looks see too few cycles to read the broker's error off them: there it is channel-churn.
    one_shot=False,
)
