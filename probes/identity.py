"""The identity of a probe stream, and the properties of its messages."""

from dataclasses import dataclass

from ackscope.records import Outcome

PERSISTENT, TRANSIENT = 2, 1
"""AMQP delivery modes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identity of a stream.

    Attributes:
        queue_type: classic, quorum or stream; "none" without a queue.
        queue: the queue that it publishes to; "" without a queue.
        node: the node that it measures, if configured; "" for any node behind the address.
        rate: messages per second; 0 for a stream of timed steps.
        expected: outcome of a message on a healthy broker.
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
