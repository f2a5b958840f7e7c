"""Declares the delivery probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import (
    CLASSIC_AND_QUORUM,
    MESSAGE_OPTIONS,
    ONE_SHOT_SENDING,
    RATE_CAP,
    UNDECIDED,
    OneShot,
    Probe,
    QueueTypes,
    SendingSettings,
)


class DeliverySettings(SendingSettings):
    """Settings of the delivery probe.

    Attributes:
        queue_types: a stream of messages, and a queue, for each.
        missing_after: seconds without a delivery after which a confirmed message counts as missing.
        prefetch: unacknowledged deliveries the broker may push to the probe's consumer.
    """

    queue_types: QueueTypes = CLASSIC_AND_QUORUM
    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    missing_after: Seconds = Field(default=30.0, gt=0)
    prefetch: int = Field(default=100, ge=1, le=2000)


PROBE = Probe(
    name="delivery",
    summary="from publish to delivery to ack: latency, order, duplicates, loss",
    settings=DeliverySettings,
    module="probes.delivery",
    one_shot=OneShot(
        takes=MESSAGE_OPTIONS | {"queue_type"},
        settings={**ONE_SHOT_SENDING, "missing_after": UNDECIDED, "prefetch": 1000},
    ),
)
