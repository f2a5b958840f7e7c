"""The settle probe: measures over AMQP 1.0 how long the broker takes to settle a message.

It is the confirm probe of AMQP 1.0, with the same book-keeping: `accepted` counts as acked, `rejected` as nacked,
`released` as returned. Nothing consumes from its queues, for the reason given in `probes.confirm`.
"""

from probes.amqp10.publisher import Amqp10Publisher
from probes.catalogue.probe import SendingSettings
from probes.catalogue.settle import PROBE, SettleSettings
from probes.message_stream import MessageStream
from probes.probe_stream import ProbeStream, StreamContext
from probes.queues import QueueSpec

NAME = PROBE.name


class Amqp10Stream(MessageStream):
    """Base of streams that publish to one queue over AMQP 1.0."""

    def __init__(
        self, context: StreamContext, settings: SendingSettings, probe: str, stream: str, queue: QueueSpec
    ) -> None:
        who = context.identity(probe, stream, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        self._target = queue
        super().__init__(context, settings, who, queue)

    async def open(self) -> Amqp10Publisher:
        """Connect, and declare the queue."""
        return await Amqp10Publisher.open(self._context.server, f"ackscope-probe {self.stats.who.probe}", self._target)


def streams(settings: SettleSettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [
        Amqp10Stream(context, settings, NAME, kind, context.queue(NAME, kind, kind))
        for kind in dict.fromkeys(settings.queue_types)
    ]
