"""Declaration of a probe, and the settings that several probes have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import Field

from ackscope.records import Outcome
from ackscope.settings import Seconds, Settings

RATE_CAP = 5000
"""Maximum messages per second of a stream: a probe must never be a load."""

SMALLEST_PAYLOAD, LARGEST_PAYLOAD = 32, 1_000_000
"""Limits of the message size in bytes: enough for the probe's own mark, and cheap for a production broker."""

UNDECIDED = 10.0
"""Seconds after which a message of a one-shot run counts as undecided."""

ONE_SHOT_SENDING: Mapping[str, Any] = {"undecided_after": UNDECIDED, "max_outstanding": 10_000}
"""Settings of one-shot runs that send as fast as --rate says."""

ONE_SHOT_MATCHED: Mapping[str, Any] = {**ONE_SHOT_SENDING, "missing_after": UNDECIDED}
"""The same, of those that also consume what they publish."""

QueueType = Literal["classic", "quorum"]
QueueTypes = Annotated[tuple[QueueType, ...], Field(min_length=1)]
CLASSIC_AND_QUORUM: tuple[QueueType, ...] = get_args(QueueType)

MESSAGE_OPTIONS = frozenset({"rate", "payload"})
"""Options of `ackscope probe` for every probe that sends messages."""


class SendingSettings(Settings):
    """Settings of every probe that sends messages.

    Attributes:
        rate: messages per second and stream.
        payload_bytes: size of a message's body.
        undecided_after: seconds without ack or nack after which a message counts as undecided.
        max_outstanding: messages that may wait for their confirm; at the bound the probe sends no more.
    """

    rate: float = Field(default=5.0, gt=0, le=RATE_CAP)
    payload_bytes: int = Field(default=64, ge=SMALLEST_PAYLOAD, le=LARGEST_PAYLOAD)
    undecided_after: Seconds = Field(default=30.0, gt=0)
    max_outstanding: int = Field(default=1000, ge=1, le=50_000)


class MatchedSettings(SendingSettings):
    """Settings of probes that also consume what they publish.

    Attributes:
        missing_after: seconds without a delivery after which a confirmed message counts as missing.
    """

    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    missing_after: Seconds = Field(default=30.0, gt=0)


class RefusedSettings(SendingSettings):
    """Settings of probes whose queue refuses every message.

    Attributes:
        rate: messages per second.
    """

    rate: float = Field(default=0.5, gt=0, le=100)
    max_outstanding: int = Field(default=100, ge=1, le=1000)


class RoundSettings(Settings):
    """Settings of probes that repeat timed steps.

    Attributes:
        interval: time from one round to the next.
        timeout: longest time that one step may take; a step that takes longer has failed.
    """

    interval: Seconds = Field(ge=0.01, le=3600)
    timeout: Seconds = Field(default=10.0, ge=0.1, le=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """Defaults of a one-shot run, `ackscope probe NAME`.

    Attributes:
        duration: default of --for, in seconds.
        takes: options that apply to it, in addition to those of all probes.
        settings: settings that differ from the continuous probe.
        every: seconds between rounds; 0 if the probe sends at a rate.
    """

    duration: float = 10.0
    takes: frozenset[str] = frozenset({"every"})
    settings: Mapping[str, Any] = field(default_factory=dict)
    every: float = 0.0


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Generic[S]):
    """What everybody must know of a probe without running it.

    Attributes:
        name: of the probe: its key in the configuration, and the label `probe` of its metrics.
        summary: what it measures, in the help of the command and on the page; at most 65 characters.
        settings: model of its settings; all fields have defaults.
        module: module with `streams(settings, context)`, which makes its streams.
        one_shot: defaults of a one-shot run.
        expected: outcome of its messages on a healthy broker.
        protocol: what it speaks. AMQP 1.0 needs the extra `amqp10`, the stream protocol `streams`; such a probe runs
            only where it is asked for.
        on_nodes: whether it also runs against every node with its own address.
    """

    name: str
    summary: str
    settings: type[S]
    module: str
    one_shot: OneShot
    expected: Outcome = Outcome.ACKED
    protocol: Literal["amqp091", "amqp10", "stream"] = "amqp091"
    on_nodes: bool = False

    @property
    def sends(self) -> bool:
        """Whether its messages have outcomes; the others time steps."""
        return issubclass(self.settings, SendingSettings)

    @property
    def by_default(self) -> bool:
        """Whether it runs unless it is switched off."""
        return self.protocol == "amqp091"

    @property
    def order(self) -> tuple[bool, bool, str]:
        """Its place in lists."""
        return self.expected is not Outcome.ACKED, not self.sends, self.name
