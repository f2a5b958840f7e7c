"""What a client lived through: the records that probes emit and every sink understands.

Probes emit; the exporter turns records into metrics and landing rows. Neither knows the other.
Times of one message are kept apart, or a stall of the client would look like a stall of the broker
(coordinated omission): when it was meant to go, when it went, when it was settled.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What became of one published message; every message has exactly one, and all stay in the denominator."""

    ACKED = "acked"
    NACKED = "nacked"
    RETURNED = "returned"
    """The broker found no queue: basic.return, then an ack."""
    UNDECIDED = "undecided"
    """Neither ack nor nack within the probe's time limit."""
    LOST = "lost"
    """The channel or connection died before it was settled; the broker may or may not have it."""


# The outcome that a probe expects of its messages, if it is not `ACKED`.
_EXPECTED = {"nack": Outcome.NACKED}

NOT_ACKED_BY_DESIGN = tuple(_EXPECTED)
"""Probes whose messages are not acked when all is well; they do not count in a share of acked messages."""


def expected_outcome(probe: str) -> Outcome:
    """What becomes of a message of this probe when all is well."""
    return _EXPECTED.get(probe, Outcome.ACKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """One message of a probe, once its outcome is known.

    Attributes:
        probe: name of the probe (confirm, delivery, ...).
        stream: what tells the streams of a probe apart, such as "classic" or "classic-large".
        queue_type: classic, quorum or stream; "none" where no queue takes part.
        node: the node whose queue took it, as the broker names it; "" where that is not known.
        epoch: counts the probe's channels; delivery tags restart with each.
        seq: the delivery tag of the publish on its channel, from 1.
        intended_at: wall clock, seconds since 1970, when the schedule wanted it sent.
        send_delay: seconds from intended to sent: the probe's own error.
        confirm: seconds from sent to settled (ack, nack), which is when the kernel got the frame, or over TLS when it
            was read; None where it never was.
        response: seconds from intended to settled: what a caller would have waited.
        multiple: the ack frame that settled it had its `multiple` flag set.
        group: how many messages that frame settled.
        delivery: seconds from sent to the first delivery; None where none was awaited or none came.
        deliveries: how often it was delivered; None where none was awaited.
        redelivered: the redelivered flag of any of its deliveries.
        out_of_order: it was delivered after a later one.
    """

    probe: str
    stream: str
    queue_type: str
    vhost: str
    node: str
    run_id: str
    epoch: int
    seq: int
    delivery_mode: int
    payload_bytes: int
    intended_at: float
    send_delay: float
    outcome: Outcome
    confirm: float | None = None
    response: float | None = None
    multiple: bool | None = None
    group: int | None = None
    delivery: float | None = None
    deliveries: int | None = None
    redelivered: bool | None = None
    out_of_order: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AckBurst:
    """Ack frames that arrived together: how the broker batches its confirms.

    Attributes:
        at: wall clock of the first frame, seconds since 1970.
        frames: ack and nack frames in the burst.
        multiple_frames: those with the `multiple` flag.
        messages: messages that they settled.
        interval: seconds since the first frame of the previous burst on this channel; None for the first.
        span: seconds from its first to its last frame.
    """

    probe: str
    stream: str
    queue_type: str
    vhost: str
    node: str
    run_id: str
    at: float
    frames: int
    multiple_frames: int
    messages: int
    interval: float | None
    span: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One timed step of a probe that measures something else than a stream of messages.

    Attributes:
        stream: what tells the streams of a probe apart; a probe with one stream calls it by its own name.
        at: wall clock when the step began, seconds since 1970.
        step: what was timed, such as "tcp", "declare", "requeue" or "dead-letter".
        seconds: how long it took; None where it did not come to an end.
        ok: it ended as it should.
        reason: why not, in plain words; None when `ok`.
    """

    probe: str
    stream: str
    vhost: str
    node: str
    run_id: str
    at: float
    step: str
    seconds: float | None
    ok: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """A summary of one duration, in seconds; quantiles are None while `count` is 0."""

    count: int = 0
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class ProbeState(StrEnum):
    """How a probe's stream is doing."""

    CONNECTING = "connecting"
    RUNNING = "running"
    BLOCKED = "blocked"
    """The broker sent connection.blocked: the probe publishes nothing until it is lifted."""
    FAILED = "failed"
    """It cannot measure; `reason` says why. It tries again by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One timed step of a probe over its recent window (`seconds`) and since its start (the counts).

    Attributes:
        attempts: how often it was tried.
        failures: how often it did not end as it should; they stay in `attempts`.
        seconds: durations of those that did.
        reason: why the latest attempt failed; None when it did not.
    """

    attempts: int = 0
    failures: int = 0
    seconds: Quantiles = field(default_factory=Quantiles)
    reason: str | None = None


class BatchingKind(StrEnum):
    """What the ack frames of a stream look like."""

    SYNC = "sync"
    """Gated: the broker writes everything that came during the write before, then confirms it together."""
    UNBATCHED = "unbatched"
    """Each message is confirmed by itself: nothing in the way holds confirms together."""
    WINDOW_LIMITED = "window-limited"
    """The groups are as large as something lets them be (outstanding messages, credit), not as the interval."""
    UNKNOWN = "unknown"
    """Too few bursts, or they do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """What the bursts of acks tell about how the broker writes before it confirms.

    Attributes:
        interval: estimate of the time of one sync or flush, seconds; None unless `kind` is SYNC.
        floor: least latency inside a burst, median over bursts, seconds: round trip + sync + replication.
        slope: seconds of latency a message gains for each second it was sent earlier in its burst, median: near 1 where
            batching explains the latency.
        group: messages a burst, median.
        bursts: bursts that the estimate rests on.
        confidence: 0..1.
        fsync: this broker calls fsync (or fdatasync) before it confirms on this queue type, so that the word is right.
        because: how this follows, in a sentence for a person.
    """

    kind: BatchingKind = BatchingKind.UNKNOWN
    interval: float | None = None
    floor: float | None = None
    slope: float | None = None
    group: float | None = None
    bursts: int = 0
    confidence: float = 0.0
    fsync: bool = False
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """One stream of one probe, over its recent window (the last minute) and since its start.

    Attributes:
        stream: what tells the streams of a probe apart, such as "classic".
        at: wall clock, seconds since 1970, of this summary.
        state: how it is doing now; `reason` in plain words when it is not running.
        doubtful: why the recent figures cannot be trusted; None when they can.
        success: the last window held at least one message or step, and every one of them ended as this probe expects:
            acked (and delivered), or nacked where the queue must nack.
        outcomes: Outcome -> messages since the start of the probe.
        outstanding: published and not settled yet.
        confirm: sent to settled, recent window.
        response: intended to settled, recent window.
        delivery: sent to delivered, recent window; count 0 where the probe awaits no deliveries.
        send_delay: intended to sent, recent window: the probe's own error.
        loop_lag: how late the probe's own clock loop woke, recent window: the probe's own error.
        burst_messages: messages an ack burst, recent window (a plain number, not seconds).
        burst_interval: seconds between ack bursts, recent window.
        redeliveries, duplicates, out_of_order, missing: deliveries since the start of the probe; None where none
            are awaited. `missing`: confirmed, and not delivered within the probe's time limit.
        blocked_seconds: total time under connection.blocked.
        blocked_reason: what the broker gave as the reason of the latest block; None where there was none.
        connects: connections opened since the start of the probe.
        steps: name of a step -> how it did; empty for probes of messages alone.
        batching: what the ack bursts of the recent window tell; None where the probe does not look.
        prefetch: the limit that the probe's own consumer has; None without one.
        unacked: deliveries that the probe's own consumer held, each time it looked (a plain number, not seconds).
        broker: what answered, such as "RabbitMQ 4.3.6"; "" before the first connection.
    """

    probe: str
    stream: str
    queue_type: str
    vhost: str
    queue: str
    node: str
    at: float
    state: ProbeState
    reason: str | None = None
    doubtful: str | None = None
    success: bool = False
    rate: float = 0.0
    delivery_mode: int = 2
    payload_bytes: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    outstanding: int = 0
    confirm: Quantiles = field(default_factory=Quantiles)
    response: Quantiles = field(default_factory=Quantiles)
    delivery: Quantiles = field(default_factory=Quantiles)
    send_delay: Quantiles = field(default_factory=Quantiles)
    loop_lag: Quantiles = field(default_factory=Quantiles)
    burst_messages: Quantiles = field(default_factory=Quantiles)
    burst_interval: Quantiles = field(default_factory=Quantiles)
    redeliveries: int | None = None
    duplicates: int | None = None
    out_of_order: int | None = None
    missing: int | None = None
    blocked_seconds: float = 0.0
    blocked_reason: str | None = None
    connects: int = 0
    steps: dict[str, Step] = field(default_factory=dict)
    batching: Batching | None = None
    prefetch: int | None = None
    unacked: Quantiles = field(default_factory=Quantiles)
    broker: str = ""
