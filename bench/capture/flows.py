"""Byte streams: the segments of one direction of a connection, in order and without duplicates."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from bench.capture.pcap import Segment

_MODULUS = 1 << 32
_HALF = 1 << 31

Side = tuple[str, int]
"""Address and port of one end of a connection."""

T_co = TypeVar("T_co", covariant=True)


class Piece(NamedTuple):
    """Bytes that became readable together, and the time of the segment that made them readable.

    Attributes:
        at: nanoseconds of the wall clock.
    """

    at: int
    data: bytes


class Flow:
    """Puts the segments of one direction in order.

    Args:
        first: sequence number of its first byte.
    """

    def __init__(self, first: int) -> None:
        self._next = first
        self._early: dict[int, bytes] = {}

    def take(self, at: int, seq: int, data: bytes) -> Piece | None:
        """Process a segment. Returns the bytes that are readable now, or None."""
        ready = self._fitting(seq, data)
        if ready is None:
            return None
        parts = [ready]
        # Segments that arrived early are readable now, at the time of the segment that closed the gap.
        while (early := self._pop_early()) is not None:
            parts.append(early)
        joined = b"".join(parts)
        return Piece(at, joined) if joined else None

    def _fitting(self, seq: int, data: bytes) -> bytes | None:
        """Return the new bytes of a segment, or store it and return None if bytes before it are missing."""
        behind = (self._next - seq) % _MODULUS
        if behind >= _HALF:
            self._early[seq] = data
            return None
        fresh = data[behind:]
        self._next = (self._next + len(fresh)) % _MODULUS
        return fresh

    def _pop_early(self) -> bytes | None:
        for seq, data in self._early.items():
            if (self._next - seq) % _MODULUS < _HALF:
                del self._early[seq]
                return self._fitting(seq, data)
        return None


class Cutter(Protocol[T_co]):
    """Cuts one direction of a connection into frames."""

    flow: Flow

    def cut(self, piece: Piece) -> Iterator[T_co]:
        """Yield the frames that are complete after this piece."""


class Sent(NamedTuple):
    """One frame as captured.

    Attributes:
        at: nanoseconds of the wall clock at which its last byte was readable.
        client: the client's end of the connection.
        from_client: whether the client sent it.
        frame: as its cutter made it.
    """

    at: int
    client: Side
    from_client: bool
    frame: object


def frames(captured: Iterable[Segment], port: int, cutter: Callable[[Flow], Cutter[object]]) -> Iterator[Sent]:
    """Yield the frames of all connections to `port` that the capture has from their start."""
    flows: dict[tuple[Side, Side], Cutter[object]] = {}
    for segment in captured:
        way = (segment.source, segment.target)
        if segment.syn:
            flows[way] = cutter(Flow((segment.seq + 1) % _MODULUS))
            continue
        of_way = flows.get(way)
        piece = of_way.flow.take(segment.at, segment.seq, segment.data) if of_way and segment.data else None
        if of_way is None or piece is None:
            continue
        from_client = segment.target[1] == port
        client = segment.source if from_client else segment.target
        for each in of_way.cut(piece):
            yield Sent(piece.at, client, from_client, each)
