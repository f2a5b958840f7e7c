"""Declares the redelivery probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import CLASSIC_AND_QUORUM, OneShot, Probe, QueueTypes, RoundSettings


class RedeliverySettings(RoundSettings):
    """Settings of the redelivery probe.

    Attributes:
        queue_types: a pair of queues for each.
        connection_loss_every: time from one cut of the probe's own connection to the next: the broker logs a warning
            for each; 0 cuts none.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: QueueTypes = CLASSIC_AND_QUORUM
    connection_loss_every: Seconds = Field(default=600.0, ge=0, le=86_400)


PROBE = Probe(
    name="redelivery",
    summary="requeue by nack, closed channel, lost connection; dead letters",
    settings=RedeliverySettings,
    module="probes.redelivery",
    one_shot=OneShot(
        takes=frozenset({"every", "queue_type"}),
        settings={"timeout": 5.0, "connection_loss_every": 2.0},
        every=0.5,
    ),
)
