"""Byte streams: the segments of one direction of a connection, in order and without duplicates."""

from typing import NamedTuple

_MODULUS = 1 << 32
_HALF = 1 << 31


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
