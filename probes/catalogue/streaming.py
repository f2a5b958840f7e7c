"""Declares the streaming probe."""

from pydantic import Field

from probes.catalogue.probe import MESSAGE_OPTIONS, ONE_SHOT_MATCHED, MatchedSettings, OneShot, Probe


class StreamingSettings(MatchedSettings):
    """Settings of the streaming probe (stream protocol).

    Attributes:
        rate: messages per second.
        credit: chunks of messages that the broker may send ahead to the probe's reader.
    """

    credit: int = Field(default=100, ge=1, le=10_000)


PROBE = Probe(
    name="streaming",
    summary="over the stream protocol: from publish to confirm to delivery",
    settings=StreamingSettings,
    module="probes.streaming.read_back",
    one_shot=OneShot(
        takes=MESSAGE_OPTIONS | {"stream_port"},
        settings={**ONE_SHOT_MATCHED, "credit": 1000},
    ),
    protocol="stream",
)
