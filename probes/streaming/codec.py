"""Turns frames of the stream protocol into bytes and back. rstream encodes and decodes; nothing else of it is used.

Its client is not: it notes no times, reads frames one await after the other, and keeps what it has read in queues
without a limit.
"""

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from ackscope.errors import MissingPart

LARGEST = 64 * 1024 * 1024
"""Bytes of a frame beyond which what arrives is not read. A chunk of messages is one frame, whatever was negotiated."""

_SIZE = 4
_SMALLEST = 4


class NotStreams(Exception):
    """What arrived is no frame of the stream protocol; the message says why."""


class Name(str):
    """A text of a frame. rstream 1.1 announces the number of its characters; the protocol wants that of its bytes."""

    __slots__ = ()

    def __len__(self) -> int:
        """Return the number of bytes."""
        return len(self.encode())


def library() -> Any:
    """Return the modules of rstream that are used: `schema`, `encoding`, `exceptions`, `amqp`, `constants`.

    Raises:
        MissingPart: it is not installed.
    """
    try:
        # An extra, needed for the stream protocol only.
        names = ("schema", "encoding", "exceptions", "amqp", "constants")
        return SimpleNamespace(**{name: import_module(f"rstream.{name}") for name in names})
    except ImportError:
        raise MissingPart("the stream protocol needs rstream: pip install 'ackscope[streams]'") from None


class FrameDecoder:
    """Cuts the bytes of one direction of a connection into frames.

    Args:
        rstream: what `library` returned.
    """

    def __init__(self, rstream: Any) -> None:
        self._decode = rstream.encoding.decode_frame
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the frames that are complete with these bytes.

        Raises:
            NotStreams: this is not the stream protocol, or a frame is damaged.
        """
        self._rest += data
        while len(self._rest) >= _SIZE:
            size = int.from_bytes(self._rest[:_SIZE], "big")
            if not _SMALLEST <= size <= LARGEST:
                raise NotStreams(f"it sends a frame of {size} bytes")
            if len(self._rest) < _SIZE + size:
                return
            raw = bytes(self._rest[_SIZE : _SIZE + size])
            del self._rest[: _SIZE + size]
            try:
                yield self._decode(raw)
            except (KeyError, ValueError) as error:
                # The cause says what is wrong, such as "Invalid checksum".
                raise NotStreams(f"it sends a frame that cannot be read: {error.__cause__ or error}") from None


def message_head(rstream: Any, size: int) -> bytes:
    """Return what precedes a body of `size` bytes in a message: the data section of AMQP 1.0.

    Clients of other protocols can then read the stream too.
    """
    encoded = bytes(rstream.amqp.AMQPMessage(body=bytes(size)))
    return encoded[: len(encoded) - size]
