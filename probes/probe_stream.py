"""The contract of a probe stream, which runs in successive sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from ackscope.clock import Instant
from probes.catalogue import PROBES
from probes.identity import PERSISTENT, Identity
from probes.instrument import LoopLag
from probes.queues import QueueSpec, long_lived, one_shot, queue_name
from probes.settings import AmqpServer
from probes.stream_stats import StreamStats


class ProbeStream(Protocol):
    """A stream of a probe. The runner starts its sessions, handles its errors and delivers its records."""

    @property
    def cluster(self) -> str:
        """Name of the cluster that it measures."""
        ...

    @property
    def stats(self) -> StreamStats:
        """Its statistics."""
        ...

    @property
    def queues(self) -> Sequence[str]:
        """Names of its queues."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no response is outstanding."""
        ...

    async def session(self) -> None:
        """Connect, declare the queue, and measure until an error: one epoch.

        Raises:
            BrokerError: the reason why the session ended.
        """
        ...

    def tick(self, now: Instant) -> None:
        """Time out and aggregate messages. Called 15 to 100 times a second."""
        ...

    def stop_sending(self) -> None:
        """Stop sending. Outstanding messages may still be settled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContext:
    """The context that all streams of a target share.

    Attributes:
        run_id: 16 hexadecimal digits, new at each start.
        node: the node at `server`, if configured; "" if the address may lead to any node.
        once: whether this is a one-shot run, with its own queues and statistics of the whole run instead of the last
            minute.
    """

    cluster: str
    server: AmqpServer
    prefix: str
    run_id: str
    lag: LoopLag
    random: Random
    once: bool = False
    node: str = ""

    @property
    def span(self) -> float | None:
        """Window of the statistics in seconds; None for the whole run."""
        return None if self.once else 60.0

    def queue(self, probe: str, stream: str, queue_type: str) -> QueueSpec:
        """Return the queue of a stream."""
        if self.once:
            return one_shot(self.prefix, self.run_id, probe, stream, queue_type)
        return long_lived(queue_name(self.prefix, probe, stream, self.node), queue_type)

    def identity(
        self,
        probe: str,
        stream: str,
        queue: QueueSpec | None,
        *,
        rate: float = 0.0,
        payload_bytes: int = 0,
        delivery_mode: int = PERSISTENT,
    ) -> Identity:
        """Return the identity of a stream; `queue` is None if it needs no queue."""
        return Identity(
            probe=probe,
            stream=stream,
            queue_type="none" if queue is None else queue.queue_type,
            vhost=self.server.address.vhost,
            queue="" if queue is None else queue.name,
            run_id=self.run_id,
            rate=rate,
            payload_bytes=payload_bytes,
            delivery_mode=delivery_mode,
            node=self.node,
            expected=PROBES[probe].expected,
        )

    def new_stats(self, who: Identity) -> StreamStats:
        """Create empty statistics for a stream."""
        return StreamStats(who, lag=self.lag.recent, span=self.span)


def aggregate_share(waiting: int) -> int:
    """Return the number of messages to aggregate in one tick: about 0.3 ms of work, more if messages accumulate."""
    return 32 + waiting // 16
