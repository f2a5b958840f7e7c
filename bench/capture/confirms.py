"""Publishes and the acks that settled them, of every channel of a capture."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pika import frame, spec

from bench.capture.flows import Flow, Piece
from bench.capture.pcap import Segment

Side = tuple[str, int]


@dataclass(slots=True)
class Confirmed:
    """One message as the wire saw it; times in wall nanoseconds.

    Attributes:
        tag: its delivery tag.
        sent: when the last byte of its publish was on the wire.
        settled: when the last byte of the ack or nack that covers it was; None where none came.
    """

    tag: int
    sent: int
    settled: int | None = None
    nacked: bool = False

    @property
    def latency(self) -> float | None:
        """Seconds from sent to settled."""
        return None if self.settled is None else (self.settled - self.sent) / 1e9


@dataclass(slots=True)
class PublishingChannel:
    """One channel that published under confirms.

    Attributes:
        key: routing key of its first publish: the queue's name, with the default exchange.
        messages: by delivery tag, in order.
    """

    key: str = ""
    confirming: bool = False
    messages: dict[int, Confirmed] = field(default_factory=dict)
    _open: dict[int, Confirmed] = field(default_factory=dict)
    _left: int = 0

    def sends(self, at: int, decoded: object) -> None:
        """Enter a frame of the client."""
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
        """Enter a frame of the broker."""
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
        """The frames that are whole by now."""
        data, place = self._rest + piece.data, 0
        while place < len(data):
            consumed, decoded = frame.decode_frame(data[place:])
            if decoded is None:
                break
            place += consumed
            yield decoded
        self._rest = data[place:]


def publishing_channels(captured: Iterable[Segment], port: int) -> list[PublishingChannel]:
    """Every channel that published under confirms to the broker at `port`; connections opened before are left out."""
    flows: dict[tuple[Side, Side], _Cutter] = {}
    channels: dict[tuple[Side, int], PublishingChannel] = {}
    finished: list[PublishingChannel] = []
    for segment in captured:
        way = (segment.source, segment.target)
        if segment.syn:
            flows[way] = _Cutter(Flow((segment.seq + 1) % (1 << 32)))
            continue
        cutter = flows.get(way)
        piece = cutter.flow.take(segment.at, segment.seq, segment.data) if cutter and segment.data else None
        if cutter is None or piece is None:
            continue
        from_client = segment.target[1] == port
        client = segment.source if from_client else segment.target
        for decoded in cutter.cut(piece):
            place = (client, getattr(decoded, "channel_number", 0))
            if isinstance(decoded, frame.Method) and isinstance(decoded.method, spec.Channel.Open):
                finished += [channels.pop(place)] if place in channels else []
            channel = channels.setdefault(place, PublishingChannel())
            (channel.sends if from_client else channel.answers)(piece.at, decoded)
    return [channel for channel in (*finished, *channels.values()) if channel.messages]
