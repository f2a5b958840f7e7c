"""The report of a one-shot run, as text (80 columns) and JSON."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ackscope.records import Batching, BatchingKind, ProbeOutcome, ProbeState, Quantiles
from probes.confirm import NAME, PATHS
from probes.identity import TRANSIENT
from probes.latency_layers import MEANINGS, LatencyLayer, decompose, largest
from probes.self_error import duration
from probes.stream_stats import StreamStats

_WIDTH = 40
_EDGES = tuple(step * scale for scale in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0) for step in (1, 2, 5))
_COLUMNS = 11
_LABEL = 10
_INSET = " " * 28


class StreamReport:
    """The report of one stream."""

    def __init__(self, stats: StreamStats, outcome: ProbeOutcome) -> None:
        self.outcome = outcome
        self.latency = "delivery" if outcome.missing is not None else "confirm"
        measured = stats.delivery if outcome.missing is not None else stats.confirm
        self.buckets = measured.buckets(outcome.at, _EDGES)
        self.messages = sum(outcome.outcomes.values())
        self._expected, self._track = stats.who.expected, stats.track

    @property
    def measured(self) -> bool:
        """Whether any message has an outcome, or any step was tried."""
        return self.messages > 0 or bool(self.outcome.steps)

    @property
    def clean(self) -> bool:
        """Whether every message has the expected outcome and delivery, and no step failed."""
        failed = any(step.failures for step in self.outcome.steps.values())
        expected = self.outcome.outcomes.get(self._expected, 0)
        return self.measured and expected == self.messages and not failed and not self.outcome.missing

    def document(self) -> dict[str, Any]:
        """Return the JSON of the stream: outcome, histogram as counts below each edge, and the run over time."""
        edges = [*_EDGES, None]
        histogram = [
            {"up_to_seconds": edge, "count": count} for edge, count in zip(edges, self.buckets, strict=True) if count
        ]
        return {
            **asdict(self.outcome),
            "messages": self.messages,
            "histogram_of": self.latency,
            "histogram": histogram,
            "over_time": [] if self._track is None else self._track.document(),
        }

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        head = self._head()
        if not self.measured:
            return [*head, *wrap(f"NOT MEASURED: {self.outcome.reason or 'nothing was sent'}", "verdict")]
        lines = [*head, *self._state()]
        if self.messages:
            lines += ["", _row("", ("count", "p50", "p90", "p99", "max")), *self._latency_rows(), ""]
            lines += self._histogram()
            picture = [] if self._track is None else self._track.lines()
            lines += [*picture, ""] if picture else []
        lines += [*self._steps(), *self._bursts(), *self._deliveries(), *self._prefetch(), *self._own_error()]
        return lines

    def _head(self) -> list[str]:
        outcome = self.outcome
        head = outcome.stream
        if outcome.rate:
            head += f": {self.messages} messages, {outcome.rate:g}/s, {outcome.payload_bytes} bytes"
            head += ", transient" if outcome.delivery_mode == TRANSIENT else ""
        about = PATHS[outcome.stream].about if outcome.probe == NAME and outcome.stream in PATHS else ""
        return [head, f"  path       {about}"] if about else [head]

    def _state(self) -> list[str]:
        outcome, lines = self.outcome, []
        if self.messages or outcome.rate:
            counts = "  ".join(f"{name} {count}" for name, count in outcome.outcomes.items())
            lines.append(f"  outcomes   {counts}")
        if outcome.state is not ProbeState.RUNNING:
            lines += wrap(f"{outcome.state} at the end: {outcome.reason}", "state")
        if outcome.blocked_seconds:
            lines += wrap(f"{outcome.blocked_seconds:.1f} s in all; the broker: {outcome.blocked_reason}", "blocked")
        if outcome.connects > 1 and outcome.rate:
            lines.append(
                f"  connects   {outcome.connects}: the connection was lost; latencies do not include the outage"
            )
        return lines

    def _latency_rows(self) -> list[str]:
        outcome = self.outcome
        rows = [("confirm", outcome.confirm), ("response", outcome.response)]
        if outcome.missing is not None:
            rows.append(("delivery", outcome.delivery))
        return [_quantiles(name, quantiles) for name, quantiles in rows]

    def _steps(self) -> list[str]:
        steps = self.outcome.steps
        if not steps:
            return []
        lines = ["", f"  {'step':<16}" + "".join(f"{cell:>10}" for cell in ("attempts", "failed", "p50", "p99", "max"))]
        for name, step in steps.items():
            cells = [str(step.attempts), str(step.failures)]
            cells += [duration(value) for value in (step.seconds.p50, step.seconds.p99, step.seconds.max)]
            lines.append(f"  {name:<16}" + "".join(f"{cell:>10}" for cell in cells))
            if step.reason is not None:
                lines += wrap(f"failed last: {step.reason}")
        return [*lines, ""]

    def _histogram(self) -> list[str]:
        filled = [index for index, count in enumerate(self.buckets) if count]
        if not filled:
            return []
        most = max(self.buckets)
        lines = [f"number of messages by {self.latency} latency"]
        for index in range(filled[0], filled[-1] + 1):
            edge = duration(_EDGES[index]) if index < len(_EDGES) else "more"
            count = self.buckets[index]
            bar = "#" * max(1 if count else 0, round(_WIDTH * count / most))
            lines.append(f"  {edge:>9} {count:>8} {bar}".rstrip())
        return [*lines, ""]

    def _bursts(self) -> list[str]:
        size, interval = self.outcome.burst_messages, self.outcome.burst_interval
        if size.p50 is None or size.max is None:
            return []
        sizes = f"messages per burst p50 {size.p50:.0f}, max {size.max:.0f}"
        lines = [f"  ack bursts {size.count}: {sizes}; interval p50 {duration(interval.p50)}"]
        return lines + (
            [] if self.outcome.batching is None else wrap(_batching_text(self.outcome.batching), "batching")
        )

    def _deliveries(self) -> list[str]:
        outcome = self.outcome
        if outcome.missing is None:
            return []
        counts = {
            "missing": outcome.missing,
            "duplicates": outcome.duplicates,
            "redelivered": outcome.redeliveries,
            "out of order": outcome.out_of_order,
        }
        known = (f"{name} {count}" for name, count in counts.items() if count is not None)
        return [f"  delivered  {'  '.join(known)}"]

    def _prefetch(self) -> list[str]:
        outcome = self.outcome
        if outcome.prefetch is None or outcome.unacked.p50 is None or outcome.unacked.max is None:
            return []
        return [
            f"  prefetch   {outcome.prefetch}; unacked p50 {outcome.unacked.p50:.0f}, max {outcome.unacked.max:.0f}"
        ]

    def _own_error(self) -> list[str]:
        outcome = self.outcome
        verdict = "good" if outcome.doubtful is None else f"doubtful: {outcome.doubtful}"
        lines = [f"  own error  loop lag   {_short(outcome.loop_lag)}"]
        if outcome.send_delay.count:
            lines.append(f"             send delay {_short(outcome.send_delay)}")
        return [*lines, *wrap(f"measurement {verdict}", "verdict")]


EXPLANATION = (
    "confirm: from sending to ack or nack. response: from the scheduled send time.",
    "delivery: from sending to delivery. Persistent unless noted; quantiles ±1 %.",
)


def document(reports: Sequence[StreamReport]) -> dict[str, Any]:
    """Return the JSON document of `--json`: all streams and, for the confirm probe, the layers."""
    layers = decompose([report.outcome for report in reports])
    return {
        "streams": [report.document() for report in reports],
        "layers": [{**asdict(layer), "meaning": MEANINGS[layer.name]} for layer in layers],
        "verdict": largest(layers),
    }


def text(address: str, product: str, probe: str, reports: Sequence[StreamReport]) -> str:
    """Return the whole report as text."""
    lines = [f"{probe} probe of {product} at {address}", ""]
    for report in reports:
        lines += [*report.lines(), ""]
    layers = decompose([report.outcome for report in reports])
    known = any(layer.seconds is not None or layer.error is not None for layer in layers)
    lines += _layers(layers) if len(reports) > 1 and known else []
    return "\n".join([*lines, *(EXPLANATION if any(report.messages for report in reports) else ())]).rstrip()


def _layers(layers: Sequence[LatencyLayer]) -> list[str]:
    lines = ["where the time of a confirm goes, from the medians of the streams above"]
    for layer in layers:
        if layer.seconds is None:
            lines.append(f"  {layer.name:<16}{'-':>8}  withheld:")
            lines += textwrap.wrap(layer.because, 78, initial_indent=_INSET, subsequent_indent=_INSET)
        else:
            sign = "-" if layer.seconds < 0 else ""
            lines.append(f"  {layer.name:<16}{sign + duration(abs(layer.seconds)):>8}  {MEANINGS[layer.name]}")
    found = largest(layers) or "no layer stands out"
    return [*lines, *(f"  {line}" for line in textwrap.wrap(found, 76)), ""]


def _batching_text(batching: Batching) -> str:
    if batching.kind is BatchingKind.UNKNOWN:
        return f"unknown: {batching.because}"
    if batching.kind is not BatchingKind.SYNC:
        return f"{batching.kind}: {batching.because}"
    what = "an fsync" if batching.fsync else "a write"
    return f"{what} of {duration(batching.interval)} (confidence {batching.confidence:.0%}): {batching.because}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"  {name:<9}" + "".join(f"{cell:>{_COLUMNS}}" for cell in cells)


def _quantiles(name: str, quantiles: Quantiles) -> str:
    cells = [duration(value) for value in (quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max)]
    return _row(name, (str(quantiles.count), *cells))


def _short(quantiles: Quantiles) -> str:
    return f"p50 {duration(quantiles.p50)}  p99 {duration(quantiles.p99)}  max {duration(quantiles.max)}"


def wrap(sentence: str, label: str = "", width: int = 78) -> list[str]:
    """Wrap a sentence into indented lines. The first line begins with the label."""
    lines = textwrap.wrap(sentence, width - len(f"  {'':<{_LABEL}} ")) or [""]
    return [f"  {label if not index else '':<{_LABEL}} {line}".rstrip() for index, line in enumerate(lines)]
