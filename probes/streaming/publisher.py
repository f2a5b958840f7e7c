"""The counterpart of `ProbeConnection` for the stream protocol: publishes to one stream, and reads one."""

from collections.abc import Callable
from typing import Any, Protocol

from ackscope.errors import Refused, Unreachable
from probes.identity import PERSISTENT
from probes.probe_connection import SettleCallback
from probes.queues import QueueSpec
from probes.streaming.codec import Name, message_head
from probes.streaming.connection import StreamProtocolConnection, reason

_PUBLISHER = _SUBSCRIPTION = 0
_UNLIMITED = 1 << 31
_FRAME_ROOM = 64
"""Bytes of a frame beside its message, at most."""


class StreamPublisher:
    """A connection that publishes to one stream; the broker confirms every message.

    Attributes:
        closed: future whose result is the reason why the connection or the stream ended.
        product: product and version of the broker.
    """

    blocked = False
    """The protocol does not tell publishers of an alarm: the broker reads nothing, and messages are not confirmed."""

    credit = _UNLIMITED
    """The protocol has no limit for publishers."""

    def __init__(self, link: StreamProtocolConnection, stream: str) -> None:
        self._link, self._stream = link, stream
        self._schema, self._encode = link.rstream.schema, link.rstream.encoding.encode_publish
        self._head = b""
        self._number = 0
        self.closed, self.product = link.closed, link.product

    @property
    def alive(self) -> bool:
        """Whether the connection is open."""
        return self._link.alive

    def on_blocked(self, blocked: Callable[[str], None], unblocked: Callable[[], None]) -> None:
        """Register callbacks for a block, which this protocol does not tell."""

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
            for number in frame.publishing_ids:
                settle(number, at, multiple=None, nacked=False)

        def refused(frame: Any, at: float) -> None:
            for each in frame.errors:
                settle(each.publishing_id, at, multiple=None, nacked=True)

        self._link.on_frame(self._schema.PublishConfirm, confirmed)
        self._link.on_frame(self._schema.PublishError, refused)
        end_with_stream(self._link, self._stream)
        # Without a reference: with one, the broker would drop numbers that it has seen before.
        doing = f"publishing to stream {self._stream!r}"
        await self._link.ask(doing, self._schema.DeclarePublisher, _PUBLISHER, "", Name(self._stream))

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
        self._number += 1
        message = self._schema.Message(publishing_id=self._number, filter_value=None, data=self._head + body)
        return self._link.send_raw(self._encode(self._schema.Publish(publisher_id=_PUBLISHER, messages=[message])))

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond in time, cut it."""
        await self._link.close()


class ReadCallback(Protocol):
    """Called for every message that is read; `at` is when its chunk reached this machine, in monotonic seconds."""

    def __call__(self, body: bytes, at: float) -> None:
        """Process the message."""
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
        """Note that a chunk with so many messages has arrived. Returns how many of them were read before.

        The broker sends whole chunks, so that the first one after a new subscription may begin earlier. A chunk that
        ends earlier is of a new stream: the old one was deleted.
        """
        known = 0 if self.next is None or not first < self.next < first + count else self.next - first
        self.next = first + count
        return known


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
        known = position.take(chunk.chunk_first_offset, chunk.num_records)
        for data in chunk.get_messages()[known:]:
            if data.startswith(head):
                read(data[len(head) :], at)
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
