"""The reject probe: publishes over AMQP 1.0 to a queue that must refuse every message.

It is the nack probe of AMQP 1.0: the outcome must be `rejected`, so that publishers learn of a full queue.
"""

from dataclasses import replace

from probes.amqp10.settle import Amqp10Stream
from probes.catalogue.probe import RefusedSettings
from probes.catalogue.reject import PROBE
from probes.nack import REFUSES
from probes.probe_stream import ProbeStream, StreamContext

NAME = PROBE.name


def streams(settings: RefusedSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the only stream."""
    queue = replace(context.queue(NAME, NAME, "classic"), extra=REFUSES)
    return [Amqp10Stream(context, settings, NAME, NAME, queue)]
