"""Declares the handshake probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import OneShot, Probe, RoundSettings


class HandshakeSettings(RoundSettings):
    """Settings of the handshake probe; each round opens and closes one connection."""

    interval: Seconds = Field(default=30.0, ge=0.1, le=3600)


PROBE = Probe(
    name="handshake",
    summary="name resolution, TCP, TLS, AMQP and channel, each timed",
    settings=HandshakeSettings,
    module="probes.handshake",
    one_shot=OneShot(every=0.5),
    on_nodes=True,
)
