"""Declares the delivery probe."""

from pydantic import Field

from probes.catalogue.probe import (
    CLASSIC_AND_QUORUM,
    MESSAGE_OPTIONS,
    ONE_SHOT_MATCHED,
    MatchedSettings,
    OneShot,
    Probe,
    QueueTypes,
)


class DeliverySettings(MatchedSettings):
    """Settings of the delivery probe.

    Attributes:
        queue_types: a stream of messages, and a queue, for each.
        prefetch: unacknowledged deliveries the broker may push to the probe's consumer.
    """

    queue_types: QueueTypes = CLASSIC_AND_QUORUM
    prefetch: int = Field(default=100, ge=1, le=2000)


PROBE = Probe(
    name="delivery",
    summary="from publish to delivery to ack: latency, order, duplicates, loss",
    settings=DeliverySettings,
    module="probes.delivery",
    one_shot=OneShot(
        takes=MESSAGE_OPTIONS | {"queue_type"},
        settings={**ONE_SHOT_MATCHED, "prefetch": 1000},
    ),
)
