"""Reads a stream over the stream protocol, in one session after the other, and tells when each message arrived."""

from typing import Any, Protocol

from probes.streaming.codec import Name, message_head, messages
from probes.streaming.connection import StreamProtocolConnection

_SUBSCRIPTION = 0


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
    link.end_with_stream(stream)
    doing = f"reading stream {stream!r}"
    await link.ask(doing, schema.Subscribe, _SUBSCRIPTION, Name(stream), begin, credit, [])
    position.begun = True
