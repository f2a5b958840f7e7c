"""Publishes and their acks on every channel of a capture."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pika import frame, spec

from bench.capture.flows import Flow, Piece, Side, frames
from bench.capture.pcap import Segment


@dataclass(slots=True)
class Confirmed:
    """One message as captured; times are nanoseconds of the wall clock.

    Attributes:
        tag: its delivery tag.
        sent: time of the last byte of its publish.
        settled: time of the last byte of the ack or nack that covers it; None without one.
    """

    tag: int
    sent: int
    settled: int | None = None
    nacked: bool = False

    @property
    def latency(self) -> float | None:
        """Seconds from `sent` to `settled`."""
        return None if self.settled is None else (self.settled - self.sent) / 1e9


@dataclass(slots=True)
class PublishingChannel:
    """One channel in confirm mode that published messages.

    Attributes:
        key: routing key of its first publish; with the default exchange, the name of the queue.
        messages: by delivery tag, in order.
    """

    key: str = ""
    confirming: bool = False
    messages: dict[int, Confirmed] = field(default_factory=dict)
    _open: dict[int, Confirmed] = field(default_factory=dict)
    _left: int = 0

    def sends(self, at: int, decoded: object) -> None:
        """Process a frame from the client."""
        if isinstance(decoded, frame.Method):
            if isinstance(decoded.method, spec.Confirm.Select):
                self.confirming = True
            elif isinstance(decoded.method, spec.Basic.Publish):
                self.key = self.key or str(decoded.method.routing_key)
        elif isinstance(decoded, frame.Header):
            self._left = int(decoded.body_size)
            if not self._left:
                self._published(at)
        elif isinstance(decoded, frame.Body):
            self._left -= len(decoded.fragment)
            if self._left <= 0:
                self._published(at)

    def answers(self, at: int, decoded: object) -> None:
        """Process a frame from the broker."""
        method = decoded.method if isinstance(decoded, frame.Method) else None
        if not isinstance(method, spec.Basic.Ack | spec.Basic.Nack):
            return
        nacked = isinstance(method, spec.Basic.Nack)
        tag = int(method.delivery_tag)
        covered = [each for each in self._open if each <= tag or tag == 0] if method.multiple else [tag]
        for each in covered:
            message = self._open.pop(each, None)
            if message is not None:
                message.settled, message.nacked = at, nacked

    def _published(self, at: int) -> None:
        if self.confirming:
            tag = len(self.messages) + 1
            self.messages[tag] = self._open[tag] = Confirmed(tag, at)


class _Cutter:
    """Cuts one direction of a connection into AMQP frames."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._rest = b""

    def cut(self, piece: Piece) -> Iterator[object]:
        """Yield the frames that are complete after this piece."""
        data, place = self._rest + piece.data, 0
        while place < len(data):
            consumed, decoded = frame.decode_frame(data[place:])
            if decoded is None:
                break
            place += consumed
            yield decoded
        self._rest = data[place:]


def publishing_channels(captured: Iterable[Segment], port: int) -> list[PublishingChannel]:
    """Return the publishing channels of all connections to `port` that the capture has from their start.

    A channel counts if it is in confirm mode and published a message.
    """
    channels: dict[tuple[Side, int], PublishingChannel] = {}
    finished: list[PublishingChannel] = []
    for at, client, from_client, decoded in frames(captured, port, _Cutter):
        place = (client, getattr(decoded, "channel_number", 0))
        if isinstance(decoded, frame.Method) and isinstance(decoded.method, spec.Channel.Open):
            finished += [channels.pop(place)] if place in channels else []
        channel = channels.setdefault(place, PublishingChannel())
        (channel.sends if from_client else channel.answers)(at, decoded)
    return [channel for channel in (*finished, *channels.values()) if channel.messages]
