"""What tells a stream of a probe apart, and what it sends."""

from dataclasses import dataclass

from ackscope.records import Outcome

PERSISTENT, TRANSIENT = 2, 1
"""AMQP delivery modes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One stream.

    Attributes:
        queue_type: classic, quorum or stream; "none" where no queue takes part.
        queue: the queue that it publishes to; "" without one.
        node: the node that it was told to measure; "" where it takes what the address gives.
        rate: messages per second; 0 where it times steps and no messages.
        expected: what is to become of a message when all is well.
    """

    probe: str
    stream: str
    queue_type: str
    vhost: str
    queue: str
    run_id: str
    rate: float
    payload_bytes: int
    delivery_mode: int = PERSISTENT
    node: str = ""
    expected: Outcome = Outcome.ACKED
