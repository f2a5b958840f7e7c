"""Results of a probe stream as text. Pure."""

from collections.abc import Sequence

from ackscope.records import BatchingKind, ProbeOutcome
from dashboard.data.model import ConfirmLayer
from dashboard.format import readable
from probes.catalogue import NOT_ACKED_BY_DESIGN, PROBES

BELOW_ERROR = "below the error"
"""Said of a layer whose difference of medians is negative: it costs less than the medians vary."""

_ORDER = list(PROBES)


def is_control(outcome: ProbeOutcome) -> bool:
    """Whether a stream is only a control for comparison: no application behaves like it."""
    return outcome.probe == "confirm" and outcome.stream != outcome.queue_type


def position(outcome: ProbeOutcome) -> int:
    """Index of the probe in the catalogue; unknown probes come last."""
    return _ORDER.index(outcome.probe) if outcome.probe in PROBES else len(_ORDER)


def expected_reply(outcome: ProbeOutcome) -> str:
    """The broker's expected reply to a publish of this stream: confirm or nack."""
    return "nack" if outcome.probe in NOT_ACKED_BY_DESIGN else "confirm"


def failures(outcome: ProbeOutcome) -> list[str]:
    """Errors of the steps whose latest attempt failed."""
    return [f"{name}: {step.reason}" for name, step in outcome.steps.items() if step.reason]


def detail(outcome: ProbeOutcome) -> str:
    """The detail line of a probe box."""
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
    """The confirm latency by layer, in one line; None if no layer is measured."""
    nodes = {layer.node for layer in found}
    measured = [
        f"{layer.name}{f' on {layer.node}' if len(nodes) > 1 and layer.node else ''} {_layer_latency(layer.seconds)}"
        for layer in found
        if layer.seconds is not None
    ]
    return f"Confirm latency by layer (median): {', '.join(measured)}." if measured else None


def _layer_latency(seconds: float | None) -> str:
    """A difference of two medians: below zero it is smaller than the medians vary."""
    return BELOW_ERROR if seconds is not None and seconds < 0 else readable.latency(seconds)


def layer_rows(found: Sequence[ConfirmLayer]) -> list[dict[str, str]]:
    """The layers as table rows, with what each is derived from, or why it cannot be measured."""
    return [
        {
            "Layer": layer.name,
            "Node": layer.node,
            "Median": _layer_latency(layer.seconds),
            "From": layer.because,
        }
        for layer in found
    ]


def _settled(outcome: ProbeOutcome) -> list[str]:
    total = sum(outcome.outcomes.values())
    if not total and outcome.steps:
        return []
    must, words = ("nacked", "nacked as expected:") if expected_reply(outcome) == "nack" else ("acked", "acked")
    others = [f"{name} {number:,}" for name, number in outcome.outcomes.items() if number and name != must]
    return [f"{words} {outcome.outcomes.get(must, 0):,} of {total:,} settled", *others]


def _steps(outcome: ProbeOutcome) -> list[str]:
    words = []
    for step, seen in outcome.steps.items():
        failed = f", failed {seen.failures:,} of {seen.attempts:,}" if seen.failures else ""
        words.append(f"{step} max {readable.latency(seen.seconds.max)}{failed}")
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
    return [f"at most {readable.count(outcome.unacked.max)} unacked deliveries, prefetch {outcome.prefetch:,}"]


def _batches(outcome: ProbeOutcome) -> list[str]:
    words = []
    if outcome.burst_messages.count:
        p50, most = outcome.burst_messages.p50, outcome.burst_messages.max
        words.append(f"ack batches: median {readable.count(p50)}, max {readable.count(most)} messages")
    batching = outcome.batching
    if batching is not None and batching.kind is BatchingKind.SYNC and batching.interval is not None:
        write = "fsync" if batching.fsync else "flush"
        words.append(
            f"one {write} takes about {readable.latency(batching.interval)} (confidence {batching.confidence:.0%})"
        )
    return words


def _blocked(outcome: ProbeOutcome) -> list[str]:
    if outcome.blocked_seconds < 1:
        return []
    because = f" ({outcome.blocked_reason})" if outcome.blocked_reason else ""
    return [f"blocked for {readable.duration(outcome.blocked_seconds)} in total{because}"]
