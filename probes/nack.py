"""The nack probe: a queue that must refuse every message, so that the way of a basic.nack is known to work.

Its length limit is 0 and it rejects what does not fit: nothing is ever stored. An ack here is the failure.
"""

from dataclasses import replace

from probes.message_stream import MessageStream
from probes.probe_stream import ProbeStream, StreamContext
from probes.settings import NackSettings, ProbesSettings

NAME = "nack"

_REFUSES = {"x-max-length": 0, "x-overflow": "reject-publish"}


class NackStream(MessageStream):
    """Publishes to a queue that is always full and times the nacks."""

    def __init__(self, context: StreamContext, settings: NackSettings) -> None:
        # Quorum queues let some messages in before they refuse.
        queue = replace(context.queue(NAME, NAME, "classic"), extra=_REFUSES)
        who = context.identity(NAME, NAME, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        super().__init__(context, settings, who, queue)


def streams(settings: ProbesSettings, context: StreamContext) -> list[ProbeStream]:
    """The one stream."""
    return [NackStream(context, settings.nack)]
