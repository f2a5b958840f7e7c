"""Turns frames of the stream protocol into bytes and back. rstream encodes and decodes; nothing else of it is used.

Its client is not: it notes no times, reads frames one await after the other, and keeps what it has read in queues
without a limit.
"""

import io
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from ackscope.errors import MissingPart

LARGEST = 64 * 1024 * 1024
"""Bytes of a frame beyond which what arrives is not read. A chunk of messages is one frame, whatever was negotiated."""

_SIZE = 4
_SMALLEST = 4
_RESPONSE, _BATCH = 0x8000, 0x80
"""Bits of the key of a frame, and of the first byte of an entry of a chunk."""
_REFUSAL, _LONGEST_FIELD = 10, 8
"""Bytes of key, version, number and code; and of a number in a frame."""
_OK = b"\0\1"


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
        self._rstream = rstream
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
                raise NotStreams(f"it sends a frame that cannot be read: {error}") from None

    def _decode(self, raw: bytes) -> Any:
        """Decode a frame as `decode_frame` of rstream, which reads on beyond the end: a damaged count would never end.

        Raises:
            KeyError, ValueError: no such frame, another version, or other content.
        """
        key, version = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")
        if version != 1:
            raise ValueError(f"version {version}")
        kind = self._rstream.schema.registry[bool(key & _RESPONSE), self._rstream.constants.Key(key & ~_RESPONSE)]
        # A response that refuses may end after its code, although its class has more fields: they are 0 or empty then.
        refuses = bool(key & _RESPONSE) and len(raw) == _REFUSAL and raw[-2:] != _OK
        content = _Content(raw[4:] + bytes(_LONGEST_FIELD if refuses else 0))
        frame = self._rstream.encoding._decode_struct(content, kind, 1)  # noqa: SLF001  see above
        if content.read() and not refuses:
            raise ValueError(f"{kind.__name__} is too long")
        return frame


class _Content(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is not None and len(data) < size:
            raise ValueError("it ends too early")
        return data


def messages(chunk: Any) -> Iterator[tuple[int, bytes]]:
    """Yield each message of a chunk with its number in it, from 0. Batches are left out: our messages are in none.

    Raises:
        NotStreams: the chunk ends too early.
    """
    content, number = _Content(chunk.data), 0
    try:
        for _ in range(chunk.num_entries):
            first = content.read(1)
            if first[0] & _BATCH:
                count = int.from_bytes(content.read(2), "big")
                content.read(4)
                content.read(int.from_bytes(content.read(4), "big"))
                number += count
            else:
                yield number, content.read(int.from_bytes(first + content.read(3), "big"))
                number += 1
    except ValueError as error:
        raise NotStreams(f"it sends a chunk that cannot be read: {error}") from None


def message_head(rstream: Any, size: int) -> bytes:
    """Return what precedes a body of `size` bytes in a message: the data section of AMQP 1.0.

    Clients of other protocols can then read the stream too.
    """
    encoded = bytes(rstream.amqp.AMQPMessage(body=bytes(size)))
    return encoded[: len(encoded) - size]
