"""Declares the settle probe."""

from typing import Literal, get_args

from pydantic import Field

from probes.catalogue.probe import MESSAGE_OPTIONS, ONE_SHOT_SENDING, RATE_CAP, OneShot, Probe, SendingSettings

SettleQueueType = Literal["classic", "quorum", "stream"]


class SettleSettings(SendingSettings):
    """Settings of the settle probe (AMQP 1.0).

    Attributes:
        rate: messages per second and stream.
        queue_types: a stream of messages, and a queue, for each.
    """

    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    queue_types: tuple[SettleQueueType, ...] = Field(default=get_args(SettleQueueType), min_length=1)


PROBE = Probe(
    name="settle",
    summary="over AMQP 1.0: from publish to settlement",
    settings=SettleSettings,
    module="probes.amqp10.settle",
    one_shot=OneShot(takes=MESSAGE_OPTIONS | {"queue_type"}, settings=ONE_SHOT_SENDING),
    protocol="amqp10",
)
