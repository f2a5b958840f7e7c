"""What probes measure as clients: the records that they emit and that every sink understands.

Probes emit; the exporter turns records into metrics and landing rows. Neither imports the other.
A message has three times of its own (intended, sent, settled): otherwise a stall of the client would look like a stall
of the broker (coordinated omission).
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of one published message; every message has exactly one, and all of them stay in the denominator."""

    ACKED = "acked"
    NACKED = "nacked"
    RETURNED = "returned"
    """The broker found no queue: basic.return, then an ack."""
    TIMED_OUT = "undecided"
    """Neither ack nor nack within the timeout of the probe; "undecided" in metrics and tables."""
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
        intended_at: wall clock, seconds since 1970, when it was scheduled to be sent.
        send_delay: seconds from intended to sent: the probe's own error.
        confirm: seconds from sent to settled (ack or nack): when the kernel received the frame, or when it was read
            over TLS; None if it never was.
        response: seconds from intended to settled: how long a caller would have waited.
        multiple: the ack frame that settled it had its `multiple` flag set.
        group: how many messages that frame settled.
        delivery: seconds from sent to the first delivery; None if none was expected or none arrived.
        deliveries: number of deliveries; None if none was expected.
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
    """Ack frames that arrived together; they show how the broker batches its confirms.

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
    """One timed step of a probe that does not measure a stream of messages.

    Attributes:
        stream: what tells the streams of a probe apart; a probe with one stream calls it by its own name.
        at: wall clock when the step began, seconds since 1970.
        step: what was timed, such as "tcp", "declare", "requeue" or "dead-letter".
        seconds: how long it took; None if it did not complete.
        ok: it completed as expected.
        reason: why not, as text; None when `ok`.
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
    """The broker sent connection.blocked: the probe publishes nothing until connection.unblocked."""
    FAILED = "failed"
    """It cannot measure; `reason` says why. It retries on its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """One timed step of a probe over its recent window (`seconds`) and since its start (the counts).

    Attributes:
        attempts: number of attempts.
        failures: attempts that did not complete as expected; they are part of `attempts`.
        seconds: durations of the others.
        reason: why the latest attempt failed; None if it succeeded.
    """

    attempts: int = 0
    failures: int = 0
    seconds: Quantiles = field(default_factory=Quantiles)
    reason: str | None = None


class BatchingKind(StrEnum):
    """What the ack frames of a stream look like."""

    SYNC = "sync"
    """The broker writes everything that arrived during the previous write, then confirms it together."""
    UNBATCHED = "unbatched"
    """Each message is confirmed on its own."""
    WINDOW_LIMITED = "window-limited"
    """A limit (outstanding messages, credit) determines the size of the groups, not the interval."""
    UNKNOWN = "unknown"
    """Too few bursts, or they contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """What the ack bursts reveal about how the broker writes before it confirms.

    Attributes:
        interval: estimate of the time of one sync or flush, seconds; None unless `kind` is SYNC.
        floor: lowest latency inside a burst, median over bursts, seconds: round trip + sync + replication.
        slope: seconds of latency a message gains for each second it was sent earlier in its burst, median: near 1 where
            batching explains the latency.
        group: messages a burst, median.
        bursts: bursts that the estimate rests on.
        confidence: 0 to 1.
        fsync: this broker calls fsync (or fdatasync) before it confirms on this queue type, so "fsync" may be said.
        because: the reasoning, as one sentence.
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
        state: its present state; `reason` says why it is not running.
        doubtful: why the recent figures cannot be trusted; None when they can.
        success: the recent window holds at least one message or step, and each of them ended as this probe expects:
            acked (and delivered), or nacked where the queue must nack.
        outcomes: Outcome -> messages since the start of the probe.
        outstanding: messages published and not settled yet.
        confirm: sent to settled, recent window.
        response: intended to settled, recent window.
        delivery: sent to delivered, recent window; count 0 where the probe awaits no deliveries.
        send_delay: intended to sent, recent window: the probe's own error.
        loop_lag: how late the event loop of the probe woke up, recent window: the probe's own error.
        burst_messages: messages per ack burst, recent window (a plain number, not seconds).
        burst_interval: seconds between ack bursts, recent window.
        redeliveries, duplicates, out_of_order, missing: deliveries since the start of the probe; None where none
            are expected. `missing`: confirmed, and not delivered within the timeout of the probe.
        blocked_seconds: total time under connection.blocked.
        blocked_reason: the reason that the broker gave for the latest block; None if it never blocked.
        connects: connections opened since the start of the probe.
        steps: name of a step -> its figures; empty for probes that only send messages.
        batching: what the ack bursts of the recent window reveal; None if the probe does not analyse them.
        prefetch: the limit that the probe's own consumer has; None without one.
        unacked: unacknowledged deliveries of the probe's own consumer, sampled (a plain number, not seconds).
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
    steps: dict[str, ProbeStep] = field(default_factory=dict)
    batching: Batching | None = None
    prefetch: int | None = None
    unacked: Quantiles = field(default_factory=Quantiles)
    broker: str = ""
