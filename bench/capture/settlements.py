"""Publishes over AMQP 1.0 and their settlements, on every publishing session of a capture.

The decoder is made for two performatives, and shares nothing with the library of the probes.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.capture.confirms import Confirmed, PublishingChannel
from bench.capture.flows import Flow, Piece, Side, frames
from bench.capture.pcap import Segment

_HEADERS = (b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00")
_HEADER_SIZE = 8
_TRANSFER, _DISPOSITION = 0x14, 0x15
_REJECTED = 0x25
_LISTS = {0x45: (0, 0), 0xC0: (1, 1), 0xD0: (4, 4)}
"""Code of a list -> bytes of its size, and of its count."""


class Performative(NamedTuple):
    """One frame of a session.

    Attributes:
        fields: as many as were sent; what this decoder does not need is None.
    """

    channel: int
    code: int
    fields: list[int | bytes | None]


class _FrameCutter:
    """Cuts one direction of a connection into frames; a connection of another protocol has none."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._rest = b""
        self._native: bool | None = None

    def cut(self, piece: Piece) -> Iterator[Performative]:
        """Yield the performatives that are complete after this piece."""
        self._rest += piece.data
        while len(self._rest) >= _HEADER_SIZE and self._native is not False:
            if self._rest.startswith(b"AMQP"):
                self._native = self._rest[:_HEADER_SIZE] in _HEADERS
                self._rest = self._rest[_HEADER_SIZE:]
                continue
            size = int.from_bytes(self._rest[:4], "big")
            if self._native is None or len(self._rest) < size:
                return
            raw, self._rest = self._rest[:size], self._rest[size:]
            found = performative(raw)
            if found is not None:
                yield found


def publishing_links(captured: Iterable[Segment], port: int) -> list[PublishingChannel]:
    """Return the sessions to `port` that published, of all connections that the capture has from their start.

    Messages are numbered by their delivery tags, which are the numbers that the probe gives.
    """
    links: dict[tuple[Side, int], PublishingChannel] = {}
    under_way: dict[tuple[Side, int, int], Confirmed] = {}
    for at, client, from_client, frame in frames(captured, port, _FrameCutter):
        if not isinstance(frame, Performative):
            continue
        if frame.code == _TRANSFER and from_client:
            _sent(frame, at, client, links, under_way)
        elif frame.code == _DISPOSITION and not from_client:
            _settled(frame, at, client, under_way)
    return [link for link in links.values() if link.messages]


def _sent(
    frame: Performative,
    at: int,
    client: Side,
    links: dict[tuple[Side, int], PublishingChannel],
    under_way: dict[tuple[Side, int, int], Confirmed],
) -> None:
    number, tag = frame.fields[1], frame.fields[2]
    if isinstance(number, int) and isinstance(tag, bytes):
        message = Confirmed(int(tag), at)
        links.setdefault((client, frame.channel), PublishingChannel()).messages[message.tag] = message
        under_way[client, frame.channel, number] = message


def _settled(frame: Performative, at: int, client: Side, under_way: dict[tuple[Side, int, int], Confirmed]) -> None:
    first = frame.fields[1]
    last = frame.fields[2] if len(frame.fields) > 2 and isinstance(frame.fields[2], int) else first
    rejected = len(frame.fields) > 4 and frame.fields[4] == _REJECTED
    if isinstance(first, int) and isinstance(last, int):
        for number in range(first, last + 1):
            message = under_way.pop((client, frame.channel, number), None)
            if message is not None:
                message.settled, message.nacked = at, rejected


def performative(raw: bytes) -> Performative | None:
    """Decode the performative of a frame; None for an empty frame and for those of SASL."""
    start = 4 * raw[4]
    # A described list: 0x00, the descriptor as a small number, then the list.
    if raw[5] != 0 or len(raw) < start + 4 or raw[start : start + 2] != b"\x00\x53":
        return None
    channel, code = int.from_bytes(raw[6:8], "big"), raw[start + 2]
    sizes = _LISTS.get(raw[start + 3])
    if sizes is None or code not in {_TRANSFER, _DISPOSITION}:
        return None
    place = start + 4 + sizes[0]
    count = int.from_bytes(raw[place : place + sizes[1]], "big")
    place += sizes[1]
    fields: list[int | bytes | None] = []
    for _ in range(count):
        value, place = _value(raw, place)
        fields.append(value)
    return Performative(channel, code, fields)


def _value(raw: bytes, place: int) -> tuple[int | bytes | None, int]:
    """Decode a value. Returns it, or None for kinds that are not needed, and the place after it."""
    code, place = raw[place], place + 1
    if code == 0x00:  # a described value, such as an outcome: its descriptor stands for it
        descriptor, place = _value(raw, place)
        return descriptor, _value(raw, place)[1]
    width = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}.get(code >> 4)
    if width is not None:
        number = int.from_bytes(raw[place : place + width], "big")
        return (None if code == 0x40 else 1 if code == 0x41 else number), place + width
    if code >> 4 in {0xA, 0xC, 0xE}:
        size = raw[place]
        return raw[place + 1 : place + 1 + size], place + 1 + size
    (size,) = struct.unpack_from(">I", raw, place)
    return raw[place + 4 : place + 4 + size], place + 4 + size
