"""The counterpart of `ProbeConnection` for the stream protocol: publishes to one stream, and reads one."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ackscope.errors import Refused, Unreachable
from probes.identity import PERSISTENT
from probes.probe_connection import SettleCallback
from probes.queues import QueueSpec
from probes.streaming.codec import Name, message_head, messages
from probes.streaming.connection import StreamProtocolConnection, reason

BLOCKED_AFTER = 1.0
"""Seconds without a confirm until the publisher asks something, and without a response until it is blocked."""

READS_NOTHING = "it reads nothing from a publisher over the stream protocol, as in a disk alarm"

_PUBLISHER = _SUBSCRIPTION = 0
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
        end_with_stream(self._link, self._stream)
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


class ReadCallback(Protocol):
    """Called for every message that is read; `at` is when its chunk reached this machine, in monotonic seconds."""

    def __call__(self, body: bytes, at: float, *, before: bool) -> None:
        """Process the message; `before`: its offset is lower than that of the next unread message."""
        ...


class StreamPosition:
    """How far a stream was read, over all sessions of a probe.

    Attributes:
        next: offset of the next message; None before the first.
        begun: whether there was a subscription.
    """

    def __init__(self) -> None:
        self.next: int | None = None
        self.begun = False

    def take(self, first: int, count: int) -> int:
        """Note that a chunk with so many messages has arrived. Returns how many of them have lower offsets than `next`.

        The broker sends whole chunks, so the first one of a subscription may begin with messages that were read before.
        Or the stream was deleted, and these offsets are those of a new one.
        """
        before = 0 if self.next is None else min(count, max(0, self.next - first))
        self.next = first + count
        return before


async def subscribe(
    link: StreamProtocolConnection, stream: str, position: StreamPosition, size: int, credit: int, read: ReadCallback
) -> None:
    """Read a stream from now on; in a later session, from where the one before it ended.

    Args:
        link: a connection to a node with a replica of the stream.
        stream: its name.
        position: is moved with every chunk.
        size: size of the bodies in bytes. Messages of another size are of other runs, and skipped.
        credit: chunks that the broker may send ahead.
        read: called with every body.

    Raises:
        BrokerError: the broker refuses, or does not answer.
    """
    schema, kinds = link.rstream.schema, link.rstream.constants.OffsetType
    head = message_head(link.rstream, size)

    def delivered(chunk: Any, at: float) -> None:
        before = position.take(chunk.chunk_first_offset, chunk.num_records)
        for number, data in messages(chunk):
            if data.startswith(head):
                read(data[len(head) :], at, before=number < before)
        link.send(schema.Credit(_SUBSCRIPTION, 1))

    if position.next is not None:
        begin = schema.OffsetSpec.from_params(kinds.OFFSET, position.next)
    else:
        # What an earlier session published may be there and unread: a stream of a probe is small enough to read it all.
        begin = schema.OffsetSpec.from_params(kinds.FIRST if position.begun else kinds.NEXT, None)
    link.on_frame(schema.Deliver, delivered)
    end_with_stream(link, stream)
    doing = f"reading stream {stream!r}"
    await link.ask(doing, schema.Subscribe, _SUBSCRIPTION, Name(stream), begin, credit, [])
    position.begun = True


def end_with_stream(link: StreamProtocolConnection, stream: str) -> None:
    """End a connection when the broker tells that its stream is not there any more: it has ended its use of it."""

    def changed(frame: Any, _: float) -> None:
        why = reason(link.rstream, frame.metadata_info.code)
        link.end(Unreachable(f"{link.where}: stream {stream!r} was deleted, or its leader or replica moved ({why})"))

    link.on_frame(link.rstream.schema.MetadataUpdate, changed)
