"""Byte streams: the segments of one direction of a connection, in order, each byte once."""

from typing import NamedTuple

_MODULUS = 1 << 32
_HALF = 1 << 31


class Piece(NamedTuple):
    """Bytes that became readable together; `at` in wall nanoseconds, when the last of them was on the wire."""

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
        """Enter a segment; the bytes that are readable by it, if any."""
        ready = self._fitting(seq, data)
        if ready is None:
            return None
        parts = [ready]
        # What came before its turn is readable now, at the time of the segment that filled the gap.
        while (early := self._pop_early()) is not None:
            parts.append(early)
        joined = b"".join(parts)
        return Piece(at, joined) if joined else None

    def _fitting(self, seq: int, data: bytes) -> bytes | None:
        """The part of a segment that comes next; None where it came too early, and is kept."""
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
