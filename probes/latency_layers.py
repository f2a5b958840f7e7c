"""Latency breakdown of confirms: the difference of two streams of the confirm probe is the cost of one layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ackscope.records import ProbeOutcome, ProbeState
from probes.self_error import duration

LEAST_MESSAGES = 30
"""Minimum number of confirmed messages in the window for a difference of medians."""

_MIN_REPORTED = 0.01
"""Minimum seconds of a layer to be reported as a problem."""

_SMALL = 0.1
"""A layer below this share of the largest layer is not the cause."""


@dataclass(frozen=True, slots=True)
class LatencyLayer:
    """Time that one layer of the broker adds to a confirm.

    Attributes:
        seconds: difference of the medians of two streams over the same window. It may be negative if the layer costs
            less than the medians vary. None if it is withheld.
        node: the node that was measured; "" if unknown.
        because: the values that it is computed from, or why it is withheld.
        error: the probe's own error (p99) if a stream is doubtful. A difference up to this value is withheld.
    """

    name: str
    seconds: float | None
    node: str
    because: str
    error: float | None = None


class _Difference(NamedTuple):
    name: str
    whole: str
    less: str | None
    meaning: str


_DIFFERENCES = (
    _Difference("network+channel", "unroutable", None, "round trip through the channel, into no queue"),
    _Difference("queue", "transient", "unroutable", "a classic queue enqueues the message, in memory"),
    _Difference("persist", "classic", "transient", "a classic queue writes the message to disk"),
    _Difference("store", "classic-large", "classic", "4 KiB are written to the shared message store"),
    _Difference("replicate", "quorum", "transient", "a majority of quorum queue members write it"),
    _Difference("stream", "stream", "unroutable", "a majority of stream replicas write it"),
)

STREAMS = {difference.name: (difference.whole, difference.less) for difference in _DIFFERENCES}
"""By layer: the streams of the confirm probe whose medians differ by it; None for the one that is a whole median."""

MEANINGS = {difference.name: difference.meaning for difference in _DIFFERENCES}
"""Description of each layer by its name."""


def decompose(outcomes: Sequence[ProbeOutcome]) -> list[LatencyLayer]:
    """Return the layers of each node, in a fixed order; empty without streams of the confirm probe."""
    nodes: dict[str, dict[str, ProbeOutcome]] = {}
    for outcome in outcomes:
        if outcome.probe == "confirm":
            nodes.setdefault(outcome.node, {})[outcome.stream] = outcome
    return [_layer(difference, streams, node) for node, streams in nodes.items() for difference in _DIFFERENCES]


def largest(layers: Sequence[LatencyLayer]) -> str | None:
    """Describe the layers that take most of the time; None if no layer stands out.

    The text also says if the writes of a classic queue are not the cause.
    """
    known = sorted(((layer.seconds, layer.name) for layer in layers if layer.seconds is not None), reverse=True)
    if not known or known[0][0] < _MIN_REPORTED:
        return None
    most = known[0][0]
    text = "most of the time is in " + ", ".join(
        f"{name} ({duration(seconds)})" for seconds, name in known if seconds > most / 2
    )
    persist = next((item for item in layers if item.name == "persist"), None)
    # A layer that is withheld because it is below the probe's own error is small too, so use the error as its bound.
    bound = None if persist is None else persist.error if persist.seconds is None else persist.seconds
    if bound is not None and bound < _SMALL * most:
        text += f"; what a classic queue writes (persist, at most {duration(max(0.0, bound))}) is not the cause"
    return text


def _layer(difference: _Difference, streams: dict[str, ProbeOutcome], node: str) -> LatencyLayer:
    name, whole, less, _ = difference
    needed = [whole] if less is None else [whole, less]
    for stream in needed:
        reason = _unfit(stream, streams.get(stream))
        if reason is not None:
            return LatencyLayer(name, None, node, reason)
    if less is not None and name == "store" and streams[less].payload_bytes >= streams[whole].payload_bytes:
        return LatencyLayer(
            name, None, node, f"{less} is not smaller than {whole}: both go to the shared message store"
        )
    found = [streams[stream] for stream in needed]
    medians = [outcome.confirm.p50 or 0.0 for outcome in found]
    seconds = medians[0] - sum(medians[1:])
    text = " - ".join(f"{stream} {duration(p50)}" for stream, p50 in zip(needed, medians, strict=True))
    doubtful = [outcome for outcome in found if outcome.doubtful is not None]
    if not doubtful:
        return LatencyLayer(name, seconds, node, text)
    error = max(own.p99 or 0.0 for outcome in found for own in (outcome.send_delay, outcome.loop_lag))
    who = " and ".join(outcome.stream for outcome in doubtful)
    if abs(seconds) <= error:
        because = f"{who} doubtful: {text} is within the probe's own error of {duration(error)}"
        return LatencyLayer(name, None, node, because, error)
    return LatencyLayer(name, seconds, node, f"{text}; {who} doubtful, error {duration(error)}", error)


def _unfit(stream: str, outcome: ProbeOutcome | None) -> str | None:
    """Return why a stream cannot be used for a comparison; None if it can."""
    if outcome is None:
        return f"{stream} is not measured"
    if outcome.state is not ProbeState.RUNNING:
        return f"{stream} is {outcome.state.value}"
    if outcome.confirm.p50 is None or outcome.confirm.count < LEAST_MESSAGES:
        return f"{stream} has only {outcome.confirm.count} confirmed messages, {LEAST_MESSAGES} are needed"
    return None
