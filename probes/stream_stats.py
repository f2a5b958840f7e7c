"""The statistics of one stream: state, counts, recent values, and pending records."""

from collections import Counter, deque
from typing import NamedTuple

from ackscope.clock import Instant
from ackscope.records import AckBurst, Batching, MessageRecord, Outcome, ProbeOutcome, ProbeState, StepRecord
from probes.bursts import Burst
from probes.confirm_ledger import Settled
from probes.identity import Identity
from probes.recent_values import RecentCounts, RecentValues
from probes.run_trace import RunTrace
from probes.self_error import doubt_of_messages, doubt_of_steps
from probes.step_stats import Steps

_MISSING = "missing"
_LAG_AGE = 0.5
"""Seconds for which a summary of the loop lag is cached. All streams share it and query it every second."""


class MessageEntry(NamedTuple):
    """A completed message; `deliveries` is None if no deliveries were expected.

    Attributes:
        delivery: seconds from sent to first delivery.
    """

    epoch: int
    settled: Settled
    delivery: float | None = None
    deliveries: int | None = None
    redelivered: bool | None = None
    out_of_order: bool | None = None


class DeliveryCounts(NamedTuple):
    """Counts of deliveries since the start; `redeliveries` is None if the protocol does not tell them."""

    redeliveries: int | None = 0
    duplicates: int = 0
    out_of_order: int = 0


class Drained(NamedTuple):
    """Records that were removed from the statistics."""

    messages: list[MessageRecord]
    bursts: list[AckBurst]
    steps: list[StepRecord]


class StreamStats:
    """The statistics of one stream.

    Recording a message costs one append. `aggregate` does the rest later, in slices, so that it delays no measurement.

    Args:
        lag: loop lag, shared by all streams of the process.
        span: length of the window in seconds; None for the whole run.
    """

    def __init__(self, who: Identity, *, lag: RecentValues, span: float | None) -> None:
        self.who = who
        self.deliveries: DeliveryCounts | None = None
        self._lag = lag
        self.confirm, self.response, self.delivery, self.send_delay, self.burst_interval = (
            RecentValues(span=span) for _ in range(5)
        )
        self.burst_messages, self.unacked = RecentValues(unit=1.0, span=span), RecentValues(unit=1.0, span=span)
        self.steps = Steps(who, span=span)
        self.batching: Batching | None = None
        self.prefetch: int | None = None
        self.broker = ""
        self.track = RunTrace() if span is None else None
        self._recent_outcomes = RecentCounts(span=span)
        self._totals: Counter[str] = Counter()
        self._inbox: deque[MessageEntry] = deque()
        self._records: list[MessageRecord] = []
        self._bursts: list[Burst] = []
        self._state = ProbeState.CONNECTING
        self._reason: str | None = None
        self._blocked_since: float | None = None
        self._blocked_reason: str | None = None
        self._blocked_seconds = 0.0
        self._connects = 0
        self.outstanding = 0

    @property
    def waiting(self) -> int:
        """Number of pending records and entries."""
        return len(self._inbox) + len(self._records) + len(self._bursts) + self.steps.waiting

    @property
    def ready(self) -> int:
        """Number of message and step records that can be taken."""
        return len(self._records) + self.steps.waiting

    @property
    def state(self) -> ProbeState:
        """The state of the stream."""
        return self._state

    def connected(self, product: str) -> None:
        """Record that a connection was opened to `product`, such as "RabbitMQ 4.3.6"."""
        self._connects += 1
        self.broker = product

    def running(self) -> None:
        """Record that the stream measures."""
        self._set(ProbeState.RUNNING, None)

    def failed(self, reason: str, now: float) -> None:
        """Record that the stream cannot measure."""
        self._unblock(now)
        self._set(ProbeState.FAILED, reason)

    def unsupported(self, reason: str) -> None:
        """Record that this version of the broker does not have what the stream measures."""
        self._set(ProbeState.UNSUPPORTED, reason)

    def blocked(self, reason: str, now: float) -> None:
        """Record that the broker blocks publishers."""
        self._blocked_since = now if self._blocked_since is None else self._blocked_since
        self._blocked_reason = reason
        self._set(
            ProbeState.BLOCKED, f"the broker blocks publishers ({reason}); nothing is published until the block ends"
        )

    def unblocked(self, now: float) -> None:
        """Record that the broker unblocked publishers."""
        self._unblock(now)
        self.running()

    def enter(self, entry: MessageEntry) -> None:
        """Add a message."""
        self._inbox.append(entry)

    def burst(self, burst: Burst) -> None:
        """Add a burst of acks."""
        self._bursts.append(burst)
        self.burst_messages.record(burst.messages, burst.at)
        if burst.interval is not None:
            self.burst_interval.record(burst.interval, burst.at)

    def aggregate(self, now: Instant, most: int) -> None:
        """Aggregate at most `most` of the added messages."""
        for _ in range(min(most, len(self._inbox))):
            self._work(self._inbox.popleft(), now)

    def take(self, now: Instant) -> Drained:
        """Remove and return the aggregated records."""
        records, self._records = self._records, []
        bursts, self._bursts = self._bursts, []
        who, wall = self.who, now.wall - now.mono
        joined = [
            AckBurst(
                probe=who.probe,
                stream=who.stream,
                queue_type=who.queue_type,
                vhost=who.vhost,
                node=who.node,
                run_id=who.run_id,
                at=wall + burst.at,
                frames=burst.frames,
                multiple_frames=burst.multiple_frames,
                messages=burst.messages,
                interval=burst.interval,
                span=burst.span,
            )
            for burst in bursts
        ]
        return Drained(records, joined, self.steps.take(now))

    def outcome(self, now: Instant) -> ProbeOutcome:
        """Return the current outcome of the stream."""
        mono, who = now.mono, self.who
        confirm, send_delay = self.confirm.summary(mono), self.send_delay.summary(mono)
        lag = self._lag.summary(mono, age=_LAG_AGE)
        window = self._recent_outcomes.total(mono)
        steps, timed = self.steps.clean(mono), self.steps.summary(mono)
        measured = window[who.expected] > 0 or bool(steps)
        # A stream without a rate times steps instead of messages.
        doubtful = (
            doubt_of_messages(confirm=confirm, send_delay=send_delay, loop_lag=lag)
            if who.rate
            else doubt_of_steps(steps=[step.seconds for step in timed.values()], loop_lag=lag)
        )
        clean = measured and set(window) <= {who.expected} and steps is not False
        counts = self.deliveries
        blocked = 0.0 if self._blocked_since is None else mono - self._blocked_since
        return ProbeOutcome(
            probe=who.probe,
            stream=who.stream,
            queue_type=who.queue_type,
            vhost=who.vhost,
            queue=who.queue,
            node=who.node,
            at=now.wall,
            state=self._state,
            reason=self._reason,
            doubtful=None if self._state is ProbeState.UNSUPPORTED else doubtful,
            success=clean and self._state is ProbeState.RUNNING,
            rate=who.rate,
            delivery_mode=who.delivery_mode,
            payload_bytes=who.payload_bytes,
            outcomes={outcome.value: self._totals[outcome] for outcome in Outcome},
            outstanding=self.outstanding,
            confirm=confirm,
            response=self.response.summary(mono),
            delivery=self.delivery.summary(mono),
            send_delay=send_delay,
            loop_lag=lag,
            burst_messages=self.burst_messages.summary(mono),
            burst_interval=self.burst_interval.summary(mono),
            redeliveries=None if counts is None else counts.redeliveries,
            duplicates=None if counts is None else counts.duplicates,
            out_of_order=None if counts is None else counts.out_of_order,
            missing=None if counts is None else self._totals[_MISSING],
            blocked_seconds=self._blocked_seconds + blocked,
            blocked_reason=self._blocked_reason,
            connects=self._connects,
            steps=timed,
            batching=self.batching,
            prefetch=self.prefetch,
            unacked=self.unacked.summary(mono),
            broker=self.broker,
        )

    def _set(self, state: ProbeState, reason: str | None) -> None:
        self._state, self._reason = state, reason

    def _unblock(self, now: float) -> None:
        if self._blocked_since is not None:
            self._blocked_seconds += now - self._blocked_since
            if self.track is not None:
                self.track.blocked(self._blocked_since, now)
            self._blocked_since = None

    def _count(self, name: str, now: float) -> None:
        self._totals[name] += 1
        self._recent_outcomes.add(name, now)

    def _work(self, entry: MessageEntry, now: Instant) -> None:
        mono, settled, who = now.mono, entry.settled, self.who
        delay = settled.sent - settled.intended
        confirm = None if settled.at is None else settled.at - settled.sent
        response = None if settled.at is None else settled.at - settled.intended
        self._count(settled.outcome, mono)
        if self.track is not None:
            self.track.message(settled.intended, response, settled.outcome)
        self.send_delay.record(delay, mono)
        if confirm is not None and response is not None:
            self.confirm.record(confirm, mono)
            self.response.record(response, mono)
        if entry.delivery is not None:
            self.delivery.record(entry.delivery, mono)
        elif entry.deliveries == 0 and settled.outcome is Outcome.ACKED:
            self._count(_MISSING, mono)
        self._records.append(
            MessageRecord(
                probe=who.probe,
                stream=who.stream,
                queue_type=who.queue_type,
                vhost=who.vhost,
                node=who.node,
                run_id=who.run_id,
                epoch=entry.epoch,
                seq=settled.seq,
                delivery_mode=who.delivery_mode,
                payload_bytes=who.payload_bytes,
                intended_at=now.wall - (mono - settled.intended),
                send_delay=delay,
                outcome=settled.outcome,
                confirm=confirm,
                response=response,
                multiple=settled.multiple,
                group=settled.group,
                delivery=entry.delivery,
                deliveries=entry.deliveries,
                redelivered=entry.redelivered,
                out_of_order=entry.out_of_order,
            )
        )
