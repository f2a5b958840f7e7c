"""The streaming probe: publishes over the stream protocol, reads the stream, and measures confirms and deliveries.

It is the delivery probe of the stream protocol, with the same book-keeping. Reading a stream removes nothing and the
broker confirms a message when a majority of replicas has it, so that, unlike with a queue, a reader changes no confirm.
"""

from functools import partial

from ackscope.errors import Unreachable, Unsupported
from probes.catalogue.streaming import PROBE, StreamingSettings
from probes.matched_stream import MatchedStream
from probes.payload import read
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext
from probes.streaming.codec import library
from probes.streaming.connection import StreamProtocolConnection
from probes.streaming.publisher import StreamProtocolPublisher
from probes.streaming.reach import reach
from probes.streaming.reader import StreamPosition, subscribe

NAME = PROBE.name
_STREAM = "stream"


class ReadBackStream(MatchedStream):
    """Stream that publishes to the leader of a stream, and reads from a node with a replica."""

    def __init__(self, context: StreamContext, settings: StreamingSettings) -> None:
        queue = context.queue(NAME, _STREAM, _STREAM)
        who = context.identity(NAME, _STREAM, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        super().__init__(context, settings, who, queue, redelivers=False)
        self._credit = settings.credit
        self._position = StreamPosition()
        self._was_measured = False

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`. It ends when one of its two connections ends."""
        self._epoch += 1
        library()
        try:
            await self._session(f"ackscope-probe {NAME}")
        except Unsupported as error:
            if self._was_measured:
                # What was there and is gone is a failure.
                raise Unreachable(str(error)) from None
            raise

    async def _session(self, name: str) -> None:
        server, stream = self._context.server, self._source.name
        connect = partial(StreamProtocolConnection.open, name=name)
        # Over AMQP, as the streams of other probes: with their arguments, which the broker compares if there is one.
        helper = await ProbeConnection.open(server, f"{name} (declares its stream)")
        try:
            self.stats.broker = helper.product
            # Before the stream is made, which would be of no use without this port.
            first = await connect(server.streams)
            try:
                await helper.declare(self._source)
                members = await first.members(stream)
            except BaseException:
                await first.close()
                raise
        finally:
            await helper.close()
        sender = await reach(server.streams, [members.leader], f"leader of stream {stream!r}", connect, first)
        try:
            self.stats.connected(sender.product)
            # As RabbitMQ's clients: where there is a choice, the leader is left to publishers.
            wanted = [*members.replicas, members.leader]
            reader = await reach(server.streams, wanted, f"replica of stream {stream!r}", connect)
            try:
                size = self.stats.who.payload_bytes
                await subscribe(reader, stream, self._position, size, self._credit, self._read)
                self._was_measured = True
                await self._publish_while(StreamProtocolPublisher(sender, stream), reader.closed)
            finally:
                await reader.close()
        finally:
            await sender.close()

    def _read(self, body: bytes, at: float, *, before: bool) -> None:
        mark = read(body) if before else None
        # What an earlier session published was read before. What this one did is in a new stream.
        if mark is None or mark.epoch == self._epoch:
            self._delivered(body, at)


def streams(settings: StreamingSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the only stream."""
    return [ReadBackStream(context, settings)]
