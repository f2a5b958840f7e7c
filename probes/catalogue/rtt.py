"""Declares the rtt probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import OneShot, Probe, RoundSettings


class RttSettings(RoundSettings):
    """Settings of the rtt probe."""

    interval: Seconds = Field(default=1.0, ge=0.01, le=3600)


PROBE = Probe(
    name="rtt",
    summary="round trip of a passive declare, which changes nothing",
    settings=RttSettings,
    module="probes.rtt",
    one_shot=OneShot(every=0.05),
    on_nodes=True,
)
