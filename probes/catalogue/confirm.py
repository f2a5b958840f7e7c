"""Declares the confirm probe."""

from typing import Literal, get_args

from pydantic import Field

from probes.catalogue.probe import MESSAGE_OPTIONS, ONE_SHOT_SENDING, RATE_CAP, OneShot, Probe, SendingSettings

ConfirmStreamName = Literal["unroutable", "transient", "classic", "classic-large", "quorum", "stream"]


class ConfirmSettings(SendingSettings):
    """Settings of the confirm probe.

    Attributes:
        streams: paths through the broker that are measured side by side; the difference of two is the cost of a layer.
        rate: messages per second of the streams `classic` and `quorum`.
        control_rate: messages per second of each of the others.
        payload_bytes: size of a message's body; of `classic-large` at least 4096, from where on it is stored elsewhere.
    """

    streams: tuple[ConfirmStreamName, ...] = Field(default=get_args(ConfirmStreamName), min_length=1)
    control_rate: float = Field(default=1.0, gt=0, le=RATE_CAP)


PROBE = Probe(
    name="confirm",
    summary="from publish to confirm, on every path of --stream",
    settings=ConfirmSettings,
    module="probes.confirm",
    one_shot=OneShot(
        takes=MESSAGE_OPTIONS | {"queue_type", "stream", "strategy"},
        settings=ONE_SHOT_SENDING,
    ),
    on_nodes=True,
)
