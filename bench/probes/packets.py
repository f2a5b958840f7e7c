"""Packets of one run: captured while a block runs, decoded after it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.address import parse_amqp
from bench.capture.confirms import PublishingChannel, publishing_channels
from bench.capture.pcap import segments
from bench.capture.settlements import publishing_links
from bench.capture.tcpdump import capturing


@dataclass(slots=True)
class Packets:
    """Captured channels.

    Attributes:
        channels: channels with publishes in confirm mode; filled after the block.
    """

    channels: list[PublishingChannel] = field(default_factory=list)


@contextmanager
def captured(amqp: str, *, amqp10: bool = False) -> Iterator[Packets]:
    """Capture the packets to and from a broker on loopback; those of AMQP 1.0 or of AMQP 0-9-1 are decoded.

    Raises:
        MissingPart: tcpdump is missing, may not capture, or lost packets.
    """
    packets, port = Packets(), parse_amqp(amqp).port
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        file = Path(folder) / "wire.pcap"
        with capturing(port, file):
            yield packets
        decode = publishing_links if amqp10 else publishing_channels
        packets.channels = decode(segments(file.read_bytes()), port)
