"""The counterpart of `ProbeConnection` for the stream protocol: publishes to one stream."""

import asyncio
from collections.abc import Callable
from typing import Any

from ackscope.errors import Refused
from probes.identity import PERSISTENT
from probes.probe_connection import SettleCallback
from probes.queues import QueueSpec
from probes.streaming.codec import Name, message_head
from probes.streaming.connection import StreamProtocolConnection

BLOCKED_AFTER = 1.0
"""Seconds without a confirm until the publisher asks something, and without a response until it is blocked."""

READS_NOTHING = "it reads nothing from a publisher over the stream protocol, as in a disk alarm"

_PUBLISHER = 0
_UNLIMITED = 1 << 31
_FRAME_ROOM = 64
"""Bytes of a frame beside its message, at most."""


class StreamProtocolPublisher:
    """A connection that publishes to one stream; the broker confirms every message.

    Attributes:
        closed: future whose result is the reason why the connection or the stream ended.
        product: product and version of the broker.
        blocked: whether the broker reads nothing.
    """

    credit = _UNLIMITED
    """The protocol has no limit for publishers."""

    def __init__(self, link: StreamProtocolConnection, stream: str) -> None:
        self._link, self._stream = link, stream
        self._schema, self._encode = link.rstream.schema, link.rstream.encoding.encode_publish
        self._head = b""
        self._sent = self._answered = self._answered_before = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._question: asyncio.Future[Any] | None = None
        self._on_blocked: tuple[Callable[[str], None], Callable[[], None]] = (lambda _: None, lambda: None)
        self.blocked = False
        self.closed, self.product = link.closed, link.product

    @property
    def alive(self) -> bool:
        """Whether the connection is open."""
        return self._link.alive

    def on_blocked(self, blocked: Callable[[str], None], unblocked: Callable[[], None]) -> None:
        """Register callbacks for the start and the end of a block. `blocked` gets what the broker does."""
        self._on_blocked = blocked, unblocked

    def on_credit(self, more: Callable[[], None]) -> None:
        """Register a callback for the end of a time without credit, which this protocol does not have."""

    async def declare(self, queue: QueueSpec) -> None:
        """Do nothing: the stream was declared, and the broker tells if it is deleted."""

    async def touch(self, queue: QueueSpec) -> None:
        """Do nothing: a stream does not expire."""

    async def confirms(self, settle: SettleCallback, returned: Callable[[bytes], None]) -> None:  # noqa: ARG002  as any publisher
        """Declare the publisher. A stream returns nothing, so `returned` is not called.

        Raises:
            BrokerError: the broker refuses, or does not answer.
        """

        def confirmed(frame: Any, at: float) -> None:
            self._answered += len(frame.publishing_ids)
            for number in frame.publishing_ids:
                settle(number, at, multiple=None, nacked=False)

        def refused(frame: Any, at: float) -> None:
            self._answered += len(frame.errors)
            for each in frame.errors:
                settle(each.publishing_id, at, multiple=None, nacked=True)

        self._link.on_frame(self._schema.PublishConfirm, confirmed)
        self._link.on_frame(self._schema.PublishError, refused)
        self._link.end_with_stream(self._stream)
        # Without a reference: with one, the broker would drop numbers that it has seen before.
        doing = f"publishing to stream {self._stream!r}"
        await self._link.ask(doing, self._schema.DeclarePublisher, _PUBLISHER, "", Name(self._stream))
        self._watch()

    def prepare(
        self, key: str, size: int, *, exchange: str = "", delivery_mode: int = PERSISTENT, mandatory: bool = True
    ) -> None:
        """Prepare to publish bodies of `size` bytes. `key` is the stream.

        Raises:
            Refused: the broker takes no frames of that size.
        """
        if exchange or key != self._stream or delivery_mode != PERSISTENT or not mandatory:
            raise ValueError(f"this connection publishes to stream {self._stream!r}, and nothing else")
        self._head = message_head(self._link.rstream, size)
        if size + _FRAME_ROOM > self._link.frame_max:
            raise Refused(
                f"{self._link.where}: a message of {size} bytes does not fit into a frame, which has at most "
                f"{self._link.frame_max} bytes (stream.frame_max of the broker)"
            )

    def publish(self, body: bytes) -> float:
        """Publish a body. Allowed only after `prepare`, and while `alive`.

        Returns:
            Time at which it was handed to the kernel, in monotonic seconds.
        """
        self._sent += 1
        message = self._schema.Message(publishing_id=self._sent, filter_value=None, data=self._head + body)
        return self._link.send_raw(self._encode(self._schema.Publish(publisher_id=_PUBLISHER, messages=[message])))

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond in time, cut it."""
        if self._timer is not None:
            self._timer.cancel()
        await self._link.close()

    def _watch(self) -> None:
        """Ask something when confirms stay away: in an alarm the broker tells nothing, and reads nothing."""
        if not self.alive:
            return
        self._timer = self._loop.call_later(BLOCKED_AFTER, self._watch)
        stalled = self._sent > self._answered == self._answered_before
        self._answered_before = self._answered
        if self._question is not None:
            if not self.blocked:
                self.blocked = True
                self._on_blocked[0](READS_NOTHING)
        elif stalled:
            self._question = self._link.request(self._schema.Metadata, [Name(self._stream)])
            self._question.add_done_callback(self._reads)

    def _reads(self, _: "asyncio.Future[Any]") -> None:
        self._question = None
        if self.blocked:
            self.blocked = False
            self._on_blocked[1]()
