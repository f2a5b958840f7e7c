"""The queues that probes make: bounded in length, age and life, so that nothing of ours can fill a broker.

Source of the arguments: https://www.rabbitmq.com/docs/ttl, https://www.rabbitmq.com/docs/maxlength
"""

from collections.abc import Mapping
from dataclasses import dataclass

_MILLISECONDS = 1000
_LENGTH = 1000
_MESSAGE_TTL = 60
EXPIRES, EXPIRES_ONCE = 30 * 60, 60
"""Seconds without use after which the broker deletes a queue of a continuous and of a one-shot run."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A durable queue.

    Attributes:
        expires: seconds without use after which the broker deletes it. Publishing is no use;
            a get or a consumer is.
    """

    name: str
    queue_type: str
    expires: float

    @property
    def arguments(self) -> Mapping[str, object]:
        """What it is declared with. The oldest messages go first when it is full, for both types."""
        return {
            "x-queue-type": self.queue_type,
            "x-max-length": _LENGTH,
            "x-message-ttl": _MESSAGE_TTL * _MILLISECONDS,
            "x-expires": int(self.expires * _MILLISECONDS),
        }


def queue_name(prefix: str, probe: str, stream: str, node: str = "") -> str:
    """The name of a continuous probe's queue; `node` where the probe was told to measure that node."""
    return f"{prefix}.{probe}.{stream}" + (f"@{node}" if node else "")


def long_lived(name: str, queue_type: str) -> QueueSpec:
    """The queue of a continuous probe, used again after a restart: making quorum queues is costly for a cluster."""
    return QueueSpec(name, queue_type, EXPIRES)


def one_shot(prefix: str, run_id: str, probe: str, stream: str, queue_type: str) -> QueueSpec:
    """The queue of one run, deleted at its end."""
    return QueueSpec(f"{prefix}.once.{run_id}.{probe}.{stream}", queue_type, EXPIRES_ONCE)


def is_one_shot(name: str, prefix: str, run_id: str) -> bool:
    """Whether a queue belongs to that one-shot run."""
    return name.startswith(f"{prefix}.once.{run_id}.")
