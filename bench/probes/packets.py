"""Packets of one run: captured while a block runs, decoded after it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.address import parse_amqp
from bench.capture.appends import confirmed_appends, delivered_appends
from bench.capture.confirms import PublishingChannel, publishing_channels
from bench.capture.pcap import segments
from bench.capture.settlements import publishing_links
from bench.capture.tcpdump import capturing


@dataclass(slots=True)
class Packets:
    """Captured channels.

    Attributes:
        channels: channels with publishes in confirm mode; filled after the block.
        deliveries: with the stream protocol, all messages as one channel, settled by their deliveries.
    """

    channels: list[PublishingChannel] = field(default_factory=list)
    deliveries: list[PublishingChannel] = field(default_factory=list)


@contextmanager
def captured(amqp: str, *, amqp10: bool = False, stream_port: int | None = None) -> Iterator[Packets]:
    """Capture the packets to and from a broker on loopback; those of one protocol are decoded.

    Args:
        amqp: address of the broker.
        amqp10: whether to decode AMQP 1.0 instead of AMQP 0-9-1.
        stream_port: port of the stream protocol, to capture and decode that one.

    Raises:
        MissingPart: tcpdump is missing, may not capture, or lost packets.
    """
    packets, port = Packets(), stream_port or parse_amqp(amqp).port
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        file = Path(folder) / "wire.pcap"
        with capturing(port, file):
            yield packets
        data = file.read_bytes()
        decode = confirmed_appends if stream_port else publishing_links if amqp10 else publishing_channels
        packets.channels = decode(segments(data), port)
        packets.deliveries = delivered_appends(segments(data), port) if stream_port else []
