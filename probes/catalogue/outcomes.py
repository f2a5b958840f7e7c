"""Declares the outcomes probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import CLASSIC_AND_QUORUM, OneShot, Probe, QueueTypes, RoundSettings


class OutcomesSettings(RoundSettings):
    """Settings of the outcomes probe (AMQP 1.0).

    Attributes:
        queue_types: a pair of queues for each.
        disruption_every: time from one deletion of a queue under the probe's own link, and one cut of its own
            connection, to the next: the broker logs each; 0 does neither.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: QueueTypes = CLASSIC_AND_QUORUM
    disruption_every: Seconds = Field(default=600.0, ge=0, le=86_400)


PROBE = Probe(
    name="outcomes",
    summary="over AMQP 1.0: outcomes, credit, drain, detach, connection loss",
    settings=OutcomesSettings,
    module="probes.amqp10.outcomes",
    one_shot=OneShot(
        takes=frozenset({"every", "queue_type"}), settings={"timeout": 5.0, "disruption_every": 2.0}, every=0.5
    ),
    protocol="amqp10",
)
