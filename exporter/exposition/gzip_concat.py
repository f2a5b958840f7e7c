"""One gzip file of two parts: the first, large, compressed once for many files; the second anew for each.

Deflate blocks that end on a byte can be followed by any other blocks (RFC 1951), and the checksum of the whole goes on
from that of the first part (RFC 1952): the result is one ordinary member.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""gzip, deflate, no name, no time, no hints, of no known system (RFC 1952, 2.3)."""
_LEVEL = 1
"""Metrics repeat themselves: 18 MB become 0.95 MB at level 1, and 0.83 MB at level 6 for twice the time."""


_SMALL = 16 * 1024
"""An end that is no larger is sent as it is: compressing it takes longer than sending it."""


@dataclass(frozen=True, slots=True)
class GzipPrefix:
    """A part that others can follow.

    Attributes:
        blocks: deflate blocks, none of which is the last.
        crc: CRC-32 of what they hold.
        size: how many bytes they hold.
    """

    blocks: bytes
    crc: int
    size: int


def compress_prefix(pieces: Iterable[bytes]) -> GzipPrefix:
    """Compress a part that others follow."""
    return _pack(pieces, zlib.Z_FULL_FLUSH, 0, 0)


def finish_member(packed: GzipPrefix, pieces: Iterable[bytes]) -> tuple[bytes, ...]:
    """The whole file, in pieces: what is packed, then what is new."""
    end = b"".join(pieces)
    if len(end) <= _SMALL:
        # One stored block, the last one (RFC 1951, 3.2.4).
        head = struct.pack("<BHH", 1, len(end), len(end) ^ 0xFFFF)
        last = GzipPrefix(head + end, zlib.crc32(end, packed.crc), packed.size + len(end))
    else:
        last = _pack([end], zlib.Z_FINISH, packed.crc, packed.size)
    return _HEADER, packed.blocks, last.blocks, struct.pack("<II", last.crc, last.size & 0xFFFFFFFF)


def _pack(pieces: Iterable[bytes], end: int, crc: int, size: int) -> GzipPrefix:
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    blocks = []
    for piece in pieces:
        blocks.append(deflate.compress(piece))
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    blocks.append(deflate.flush(end))
    return GzipPrefix(b"".join(blocks), crc, size)
