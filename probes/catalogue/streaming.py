"""Declares the streaming probe."""

from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import (
    MESSAGE_OPTIONS,
    ONE_SHOT_SENDING,
    RATE_CAP,
    UNDECIDED,
    OneShot,
    Probe,
    SendingSettings,
)


class StreamingSettings(SendingSettings):
    """Settings of the streaming probe (stream protocol).

    Attributes:
        rate: messages per second.
        missing_after: seconds without a delivery after which a confirmed message counts as missing.
        credit: chunks of messages that the broker may send ahead to the probe's reader.
    """

    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    missing_after: Seconds = Field(default=30.0, gt=0)
    credit: int = Field(default=100, ge=1, le=10_000)


PROBE = Probe(
    name="streaming",
    summary="over the stream protocol: from publish to confirm to delivery",
    settings=StreamingSettings,
    module="probes.streaming.read_back",
    one_shot=OneShot(
        takes=MESSAGE_OPTIONS | {"stream_port"},
        settings={**ONE_SHOT_SENDING, "missing_after": UNDECIDED, "credit": 1000},
    ),
    protocol="stream",
)
