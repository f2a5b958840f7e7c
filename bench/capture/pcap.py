"""TCP segments of a pcap file, as tcpdump captures them on loopback."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ackscope.errors import DataError

_NANO, _MICRO = 0xA1B23C4D, 0xA1B2C3D4
_ETHERNET = 1
_FILE = struct.Struct("<IHHiIII")
_PACKET = struct.Struct("<IIII")
_ETHER_HEAD = 14
_TCP = 6
_SYN = 0x02


class Segment(NamedTuple):
    """One TCP segment.

    Attributes:
        at: when the kernel received it, nanoseconds of the wall clock.
        source: address and port, like `target`.
        seq: sequence number of the first byte of `data`, or of the SYN.
        syn: whether it opens this direction of the connection.
    """

    at: int
    source: tuple[str, int]
    target: tuple[str, int]
    seq: int
    syn: bool
    data: bytes


def segments(raw: bytes) -> Iterator[Segment]:
    """Yield the TCP segments of a capture in its order, without an incomplete last packet.

    Raises:
        DataError: the capture is empty, or not a pcap file with Ethernet frames.
    """
    if len(raw) < _FILE.size:
        raise DataError("the capture is empty; does tcpdump see this interface?")
    magic, _, _, _, _, _, link = _FILE.unpack_from(raw)
    if magic not in {_NANO, _MICRO} or link != _ETHERNET:
        raise DataError(f"the capture has format {magic:#x} and link type {link}; expected pcap with Ethernet frames")
    scale = 1 if magic == _NANO else 1000
    place = _FILE.size
    while place + _PACKET.size <= len(raw):
        seconds, part, captured, _ = _PACKET.unpack_from(raw, place)
        place += _PACKET.size
        if place + captured > len(raw):
            return
        found = _segment(seconds * 1_000_000_000 + part * scale, raw[place : place + captured])
        if found is not None:
            yield found
        place += captured


def _segment(at: int, packet: bytes) -> Segment | None:
    """Decode a packet; None if it is not TCP over IPv4."""
    if packet[12:14] != b"\x08\x00" or packet[_ETHER_HEAD + 9] != _TCP:
        return None
    inner = _ETHER_HEAD + 4 * (packet[_ETHER_HEAD] & 0x0F)
    length = int.from_bytes(packet[_ETHER_HEAD + 2 : _ETHER_HEAD + 4], "big")
    # Length 0: the kernel has not yet split this packet into segments (segmentation offload).
    end = _ETHER_HEAD + length if length else len(packet)
    source, target, seq = struct.unpack_from(">HHI", packet, inner)
    data = packet[inner + 4 * (packet[inner + 12] >> 4) : end]
    addresses = (_dotted(packet[_ETHER_HEAD + 12 :]), _dotted(packet[_ETHER_HEAD + 16 :]))
    return Segment(at, (addresses[0], source), (addresses[1], target), seq, bool(packet[inner + 13] & _SYN), data)


def _dotted(address: bytes) -> str:
    return ".".join(str(byte) for byte in address[:4])
