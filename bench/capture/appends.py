"""Publishes over the stream protocol, with their confirms and their deliveries, in a capture.

The decoder is made for three frames, and shares nothing with the library of the probes.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bench.capture.confirms import Confirmed, PublishingChannel
from bench.capture.flows import Flow, Piece, Side, frames
from bench.capture.pcap import Segment

_SIZE = 4
_PUBLISH, _CONFIRM, _ERROR, _DELIVER = 2, 3, 4, 8
_CHUNK = struct.Struct(">BBBHIQQQIIII")
_MARK = b"ackscope"
_RUN = 8
_NUMBERS = struct.Struct(">IQ")


class StreamFrame(NamedTuple):
    """One frame: its key, and what follows the version."""

    key: int
    content: bytes


class _StreamCutter:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._rest = b""

    def cut(self, piece: Piece) -> Iterator[StreamFrame]:
        """Yield the frames that are complete after this piece."""
        self._rest += piece.data
        while len(self._rest) >= _SIZE:
            end = _SIZE + int.from_bytes(self._rest[:_SIZE], "big")
            if len(self._rest) < end:
                return
            raw, self._rest = self._rest[_SIZE:end], self._rest[end:]
            yield StreamFrame(int.from_bytes(raw[:2], "big"), raw[4:])


def confirmed_appends(captured: Iterable[Segment], port: int) -> list[PublishingChannel]:
    """Return the connections to `port` that published. Messages are numbered as the probe numbers them."""
    links: dict[Side, PublishingChannel] = {}
    for at, client, from_client, frame in frames(captured, port, _StreamCutter):
        if not isinstance(frame, StreamFrame):
            continue
        messages = links.setdefault(client, PublishingChannel()).messages
        if frame.key == _PUBLISH and from_client:
            messages.update({number: Confirmed(number, at) for number, _ in _published(frame.content)})
        elif frame.key in {_CONFIRM, _ERROR} and not from_client:
            width = 8 if frame.key == _CONFIRM else 10
            for start in range(5, len(frame.content), width):
                message = messages.get(int.from_bytes(frame.content[start : start + 8], "big"))
                if message is not None:
                    message.settled, message.nacked = at, frame.key == _ERROR
    return [link for link in links.values() if link.messages]


def delivered_appends(captured: Iterable[Segment], port: int) -> list[PublishingChannel]:
    """Return all messages of probes as one channel, each settled by its first delivery. They must be of one epoch."""
    channel = PublishingChannel()
    for at, _, from_client, frame in frames(captured, port, _StreamCutter):
        if not isinstance(frame, StreamFrame):
            continue
        if frame.key == _PUBLISH and from_client:
            for _number, body in _published(frame.content):
                (number,) = _numbers([body])
                channel.messages[number] = Confirmed(number, at)
        elif frame.key == _DELIVER and not from_client:
            for number in _numbers(_delivered(frame.content)):
                message = channel.messages.get(number)
                if message is not None and message.settled is None:
                    message.settled = at
    return [channel] if channel.messages else []


def _published(content: bytes) -> Iterator[tuple[int, bytes]]:
    place = 5
    while place < len(content):
        number, size = struct.unpack_from(">QI", content, place)
        yield number, content[place + 12 : place + 12 + size]
        place += 12 + size


def _delivered(content: bytes) -> Iterator[bytes]:
    place = _CHUNK.size
    for _ in range(_CHUNK.unpack_from(content)[3]):
        size = int.from_bytes(content[place : place + 4], "big")
        yield content[place + 4 : place + 4 + size]
        place += 4 + size


def _numbers(bodies: Iterable[bytes]) -> Sequence[int]:
    found = []
    for body in bodies:
        start = body.find(_MARK)
        if start >= 0:
            found.append(int(_NUMBERS.unpack_from(body, start + len(_MARK) + _RUN)[1]))
    return found
