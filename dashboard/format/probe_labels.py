"""What a probe stream lived through, in words and numbers. Pure."""

from collections.abc import Sequence

from ackscope.records import BatchingKind, ProbeOutcome
from dashboard.data.model import ConfirmLayer
from dashboard.format import readable

ORDER = ("confirm", "delivery", "handshake", "rtt", "redelivery", "prefetch", "nack")
"""Probes as a reader wants them: first what applications do."""

_MUST_BE_NACKED = "nack"


def is_control(outcome: ProbeOutcome) -> bool:
    """Whether a stream is only there to be compared with: no application is like it."""
    return outcome.probe == "confirm" and outcome.stream != outcome.queue_type


def place(outcome: ProbeOutcome) -> int:
    """Where its probe stands in `ORDER`; one that is not known comes last."""
    return ORDER.index(outcome.probe) if outcome.probe in ORDER else len(ORDER)


def answer(outcome: ProbeOutcome) -> str:
    """What the broker answers a publish of this stream with."""
    return "nack" if outcome.probe == _MUST_BE_NACKED else "confirm"


def failures(outcome: ProbeOutcome) -> list[str]:
    """Why the latest attempt of a step failed, of each that did."""
    return [f"{name}: {step.reason}" for name, step in outcome.steps.items() if step.reason]


def detail(outcome: ProbeOutcome) -> str:
    """The small print of a box."""
    words = [
        *_settled(outcome),
        *_steps(outcome),
        *_delivered(outcome),
        *_held(outcome),
        *_batches(outcome),
        *_blocked(outcome),
    ]
    if outcome.send_delay.count or not outcome.steps:
        words.append(f"own error: send delay p99 {readable.latency(outcome.send_delay.p99)}")
    else:
        words.append(f"own error: loop lag p99 {readable.latency(outcome.loop_lag.p99)}")
    return " · ".join(words)


def layers(found: Sequence[ConfirmLayer]) -> str | None:
    """Where the time of a confirm goes, in a line; None where nothing of it can be told."""
    nodes = {layer.node for layer in found}
    told = [
        f"{layer.name}{f' on {layer.node}' if len(nodes) > 1 and layer.node else ''} {readable.latency(layer.seconds)}"
        for layer in found
        if layer.seconds is not None
    ]
    return f"Where the time of a confirm goes (median): {', '.join(told)}." if told else None


def layer_rows(found: Sequence[ConfirmLayer]) -> list[dict[str, str]]:
    """The layers as rows of a table, with what they follow from, or why they cannot be told."""
    return [
        {
            "Layer": layer.name,
            "Node": layer.node,
            "Median": readable.latency(layer.seconds),
            "From": layer.because,
        }
        for layer in found
    ]


def _settled(outcome: ProbeOutcome) -> list[str]:
    total = sum(outcome.outcomes.values())
    if not total and outcome.steps:
        return []
    must, words = ("nacked", "nacked, as they must be:") if answer(outcome) == "nack" else ("acked", "acked")
    others = [f"{name} {number:,}" for name, number in outcome.outcomes.items() if number and name != must]
    return [f"{words} {outcome.outcomes.get(must, 0):,} of {total:,} settled", *others]


def _steps(outcome: ProbeOutcome) -> list[str]:
    words = []
    for step, seen in outcome.steps.items():
        failed = f", failed {seen.failures:,} of {seen.attempts:,}" if seen.failures else ""
        words.append(f"{step} at most {readable.latency(seen.seconds.max)}{failed}")
    return words


def _delivered(outcome: ProbeOutcome) -> list[str]:
    counts = (
        ("redelivered", outcome.redeliveries),
        ("duplicates", outcome.duplicates),
        ("out of order", outcome.out_of_order),
        ("missing", outcome.missing),
    )
    return [f"{label} {number:,}" for label, number in counts if number]


def _held(outcome: ProbeOutcome) -> list[str]:
    if outcome.prefetch is None or not outcome.unacked.count:
        return []
    return [f"held at most {readable.count(outcome.unacked.max)} deliveries, prefetch {outcome.prefetch:,}"]


def _batches(outcome: ProbeOutcome) -> list[str]:
    words = []
    if outcome.burst_messages.count:
        p50, most = outcome.burst_messages.p50, outcome.burst_messages.max
        words.append(f"ack batches: median {readable.count(p50)}, at most {readable.count(most)} messages")
    batching = outcome.batching
    if batching is not None and batching.kind is BatchingKind.SYNC and batching.interval is not None:
        write = "fsync" if batching.fsync else "flush"
        words.append(f"one {write} takes about {readable.latency(batching.interval)}, {batching.confidence:.0%} sure")
    return words


def _blocked(outcome: ProbeOutcome) -> list[str]:
    if outcome.blocked_seconds < 1:
        return []
    because = f" ({outcome.blocked_reason})" if outcome.blocked_reason else ""
    return [f"blocked for {readable.span(outcome.blocked_seconds)} in all{because}"]
