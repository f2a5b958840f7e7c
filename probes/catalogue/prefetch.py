"""Declares the prefetch probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import CLASSIC_AND_QUORUM, OneShot, Probe, QueueTypes, RoundSettings


class PrefetchSettings(RoundSettings):
    """Settings of the prefetch probe.

    Attributes:
        queue_types: a consumer, and a queue, for each.
        prefetch: unacknowledged deliveries that the probe's consumer allows.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: QueueTypes = CLASSIC_AND_QUORUM
    prefetch: int = Field(default=5, ge=1, le=100)


PROBE = Probe(
    name="prefetch",
    summary="consumer throughput at several prefetch values; recommends one",
    settings=PrefetchSettings,
    module="probes.prefetch",
    one_shot=OneShot(duration=40.0, takes=frozenset({"queue_type", "processing", "prefetch"})),
)
