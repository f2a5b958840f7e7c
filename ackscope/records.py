"""Records of what probes measure as clients; all sinks accept them.

Probes emit records, and the exporter turns them into metrics and landing rows. Neither imports the other.
A message has three times (intended, sent, settled). With fewer, a stall of the client would look like a stall of the
broker (coordinated omission).
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of one published message; every message has exactly one, and all of them stay in the denominator."""

    ACKED = "acked"
    """basic.ack, or the outcome `accepted` of AMQP 1.0."""
    NACKED = "nacked"
    """basic.nack, or the outcome `rejected` of AMQP 1.0."""
    RETURNED = "returned"
    """The broker found no queue: basic.return, then an ack; or the outcome `released` of AMQP 1.0."""
    TIMED_OUT = "undecided"
    """Neither ack nor nack within the timeout of the probe; "undecided" in metrics and tables."""
    LOST = "lost"
    """The channel or connection was lost before it was settled; the broker may or may not have the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """One message of a probe, once its outcome is known.

    Attributes:
        probe: name of the probe (confirm, delivery, ...).
        stream: name of the stream within the probe, such as "classic" or "classic-large".
        queue_type: classic, quorum or stream; "none" without a queue.
        node: the broker's name of the node whose queue received it; "" if unknown.
        epoch: number of the probe's channel; delivery tags restart with each channel.
        seq: the delivery tag of the publish on its channel, from 1. With AMQP 1.0, its number on its link, from 1.
        intended_at: wall clock, seconds since 1970, when it was scheduled to be sent.
        send_delay: seconds from intended to sent: the probe's own error.
        confirm: seconds from sent to settled (ack or nack), at the time when the kernel received the frame, or with TLS
            when the probe read it; None if it was never settled.
        response: seconds from intended to settled: the wait of a caller.
        multiple: the ack frame that settled it had its `multiple` flag set; None if never settled, and with AMQP 1.0.
        group: number of messages that this frame settled; None likewise.
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
        stream: name of the stream within the probe; the name of the probe if it has one stream.
        at: wall clock when the step began, seconds since 1970.
        step: the timed step, such as "tcp", "declare", "requeue" or "dead-letter".
        seconds: its duration; None if it did not complete.
        ok: it completed as expected.
        reason: why it failed, as text; None if `ok`.
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
    """The state of a probe's stream."""

    CONNECTING = "connecting"
    RUNNING = "running"
    BLOCKED = "blocked"
    """The broker sent connection.blocked: the probe publishes nothing until connection.unblocked."""
    FAILED = "failed"
    """It cannot measure; `reason` says why. The probe retries automatically."""
    UNSUPPORTED = "unsupported"
    """This version of the broker does not have what it measures; `reason` says what. Nothing is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """One timed step of a probe over its recent window (`seconds`) and since its start (the counts).

    Attributes:
        attempts: number of attempts.
        failures: attempts that did not complete as expected; they are part of `attempts`.
        seconds: durations of the successful attempts.
        reason: why the latest attempt failed; None if it succeeded.
    """

    attempts: int = 0
    failures: int = 0
    seconds: Quantiles = field(default_factory=Quantiles)
    reason: str | None = None


class BatchingKind(StrEnum):
    """How the broker batches the acks of a stream."""

    SYNC = "sync"
    """The broker writes all messages that arrived during the previous write, then confirms them together."""
    UNBATCHED = "unbatched"
    """Each message is confirmed separately."""
    WINDOW_LIMITED = "window-limited"
    """A limit (outstanding messages, credit) determines the size of the groups, not the interval."""
    UNKNOWN = "unknown"
    """Too few bursts, or they contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """An estimate of how the broker writes before it confirms, derived from the ack bursts.

    Attributes:
        interval: estimated time of one sync or flush, seconds; None unless `kind` is SYNC.
        floor: lowest latency within a burst, median over bursts, seconds: round trip + sync + replication.
        slope: additional seconds of latency per second that a message was sent earlier in its burst, median; near 1 if
            batching explains the latency.
        group: messages per burst, median.
        bursts: number of bursts that the estimate is based on.
        confidence: 0 to 1.
        fsync: this broker calls fsync (or fdatasync) before it confirms on this queue type, so texts may say "fsync".
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
        stream: name of the stream within the probe, such as "classic".
        at: wall clock of this summary, seconds since 1970.
        state: its current state; `reason` says why it is not running.
        doubtful: why the recent values are not reliable; None if they are.
        success: the recent window has at least one message or step, and each of them ended as this probe expects:
            acked (and delivered), or nacked if the queue must nack.
        outcomes: Outcome -> messages since the start of the probe.
        outstanding: messages published and not settled yet.
        confirm: sent to settled, recent window.
        response: intended to settled, recent window.
        delivery: sent to delivered, recent window; count 0 if the probe expects no deliveries.
        send_delay: intended to sent, recent window: the probe's own error.
        loop_lag: how late the event loop of the probe woke up, recent window: the probe's own error.
        burst_messages: messages per ack burst, recent window (a plain number, not seconds).
        burst_interval: seconds between ack bursts, recent window.
        redeliveries, duplicates, out_of_order, missing: deliveries since the start of the probe; None if none are
            expected. `missing`: confirmed, but not delivered within the timeout of the probe.
        blocked_seconds: total time under connection.blocked.
        blocked_reason: the reason that the broker gave for the latest block; None if it never blocked.
        connects: connections opened since the start of the probe.
        steps: results by step name; empty for probes that only send messages.
        batching: result of analysing the ack bursts of the recent window; None if the probe does not analyse them.
        prefetch: prefetch limit of the probe's own consumer; None without one.
        unacked: unacknowledged deliveries of the probe's own consumer, sampled (a plain number, not seconds).
        broker: name and version of the broker, such as "RabbitMQ 4.3.6"; "" before the first connection.
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
