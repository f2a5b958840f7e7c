"""The queues of probes. Length, message age and lifetime are limited, so that probes never fill a broker.

Source of the arguments: https://www.rabbitmq.com/docs/ttl, https://www.rabbitmq.com/docs/maxlength,
https://www.rabbitmq.com/docs/streams#retention
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_MILLISECONDS = 1000
_LENGTH = 1000
_MESSAGE_TTL = 60
_STREAM_BYTES, _SEGMENT_BYTES, _STREAM_AGE = 4_000_000, 1_000_000, "1h"
EXPIRES, EXPIRES_ONCE = 30 * 60, 60
"""Seconds without use after which the broker deletes a queue: of a continuous run, and of a one-shot run."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """Declaration of a durable queue.

    Attributes:
        expires: seconds without use after which the broker deletes it. Publishing does not count as use;
            a get or a consumer does. A stream does not expire.
        extra: further arguments, which override the defaults.
    """

    name: str
    queue_type: str
    expires: float
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream, which has no expiry and no basic.get, and keeps messages after they are consumed."""
        return self.queue_type == "stream"

    @property
    def arguments(self) -> Mapping[str, object]:
        """Arguments of its declaration. A full queue of any type drops its oldest messages."""
        if self.is_stream:
            # A stream deletes only whole segments, so its limits need small segments.
            bounds: dict[str, object] = {
                "x-max-length-bytes": _STREAM_BYTES,
                "x-stream-max-segment-size-bytes": _SEGMENT_BYTES,
                "x-max-age": _STREAM_AGE,
            }
        else:
            bounds = {
                "x-max-length": _LENGTH,
                "x-message-ttl": _MESSAGE_TTL * _MILLISECONDS,
                "x-expires": int(self.expires * _MILLISECONDS),
            }
        return {"x-queue-type": self.queue_type, **bounds, **self.extra}


def queue_name(prefix: str, probe: str, stream: str, node: str = "") -> str:
    """Return the queue name of a continuous probe; `node` is the node that it measures, if configured."""
    return f"{prefix}.{probe}.{stream}" + (f"@{node}" if node else "")


def long_lived(name: str, queue_type: str) -> QueueSpec:
    """Return the queue of a continuous probe. It is reused after restarts, as declaring quorum queues is expensive."""
    return QueueSpec(name, queue_type, EXPIRES)


def one_shot(prefix: str, run_id: str, probe: str, stream: str, queue_type: str) -> QueueSpec:
    """Return the queue of a one-shot run, which is deleted at its end.

    A stream does not expire, so all runs share one stream: killed runs leave only that one behind.
    """
    if queue_type == "stream":
        return QueueSpec(_stream_once(prefix), queue_type, EXPIRES_ONCE)
    return QueueSpec(f"{prefix}.once.{run_id}.{probe}.{stream}", queue_type, EXPIRES_ONCE)


def is_one_shot(name: str, prefix: str, run_id: str) -> bool:
    """Whether a queue belongs to this one-shot run."""
    return name == _stream_once(prefix) or name.startswith(f"{prefix}.once.{run_id}.")


def fate(name: str, prefix: str) -> str:
    """Describe what happens to a one-shot queue that could not be deleted."""
    if name == _stream_once(prefix):
        return "the next run that measures a stream will reuse and delete it"
    return f"it expires within {EXPIRES_ONCE} s"


def nowhere(prefix: str) -> str:
    """Return a routing key that matches no queue, so that the default exchange drops the messages."""
    return f"{prefix}.nowhere"


def _stream_once(prefix: str) -> str:
    return f"{prefix}.once.stream"
