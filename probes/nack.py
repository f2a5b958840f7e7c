"""The nack probe: publishes to a queue that must refuse every message, to check that basic.nack reaches publishers.

The length limit of the queue is 0 with overflow reject-publish, so nothing is stored. An ack is a failure.
"""

from dataclasses import replace

from probes.catalogue.nack import PROBE
from probes.catalogue.probe import RefusedSettings
from probes.message_stream import MessageStream
from probes.probe_stream import ProbeStream, StreamContext

NAME = PROBE.name

REFUSES = {"x-max-length": 0, "x-overflow": "reject-publish"}
"""Arguments of a queue that is always full."""


class NackStream(MessageStream):
    """Stream that publishes to a queue that is always full and measures the latency of nacks."""

    def __init__(self, context: StreamContext, settings: RefusedSettings) -> None:
        # Quorum queues accept some messages before they refuse.
        queue = replace(context.queue(NAME, NAME, "classic"), extra=REFUSES)
        who = context.identity(NAME, NAME, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        super().__init__(context, settings, who, queue)


def streams(settings: RefusedSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the only stream."""
    return [NackStream(context, settings)]
