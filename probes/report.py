"""The report of a one-shot run, for a person in 80 columns, and as a JSON document."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ackscope.records import Outcome, ProbeOutcome, ProbeState, Quantiles
from probes.book import Book
from probes.doubt import duration

_WIDTH = 40
_EDGES = tuple(step * scale for scale in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0) for step in (1, 2, 5))
_COLUMNS = 11


class StreamReport:
    """One stream after its run."""

    def __init__(self, book: Book, outcome: ProbeOutcome) -> None:
        self.outcome = outcome
        self.latency = "delivery" if outcome.missing is not None else "confirm"
        measured = book.delivery if outcome.missing is not None else book.confirm
        self.buckets = measured.buckets(outcome.at, _EDGES)
        self.messages = sum(outcome.outcomes.values())

    @property
    def measured(self) -> bool:
        """Whether any message was sent and got its outcome."""
        return self.messages > 0

    @property
    def clean(self) -> bool:
        """Whether all messages were acked, and delivered where that was awaited."""
        acked = self.outcome.outcomes.get(Outcome.ACKED, 0)
        return self.measured and acked == self.messages and not self.outcome.missing

    def document(self) -> dict[str, Any]:
        """For `--json`: the outcome, and the histogram as counts below each edge."""
        edges = [*_EDGES, None]
        histogram = [
            {"up_to_seconds": edge, "count": count} for edge, count in zip(edges, self.buckets, strict=True) if count
        ]
        return {**asdict(self.outcome), "messages": self.messages, "histogram_of": self.latency, "histogram": histogram}

    def lines(self) -> list[str]:
        """For a person."""
        outcome = self.outcome
        head = f"{outcome.stream}: {self.messages} messages, {outcome.rate:g}/s, {outcome.payload_bytes} bytes"
        if not self.measured:
            return [head, *_wrap(f"NOT MEASURED: {outcome.reason or 'nothing was sent'}")]
        counts = "  ".join(f"{name} {count}" for name, count in outcome.outcomes.items())
        lines = [head, f"  outcomes   {counts}"]
        if outcome.state is not ProbeState.RUNNING:
            lines += _wrap(f"{outcome.state} at the end: {outcome.reason}")
        if outcome.connects > 1:
            lines.append(f"  connects   {outcome.connects}: the connection broke, latencies do not include that")
        lines += ["", _row("", ("count", "p50", "p90", "p99", "max")), *self._latency_rows()]
        lines += ["", *self._histogram(), *self._bursts(), *self._deliveries(), *self._own_error()]
        return lines

    def _latency_rows(self) -> list[str]:
        outcome = self.outcome
        rows = [("confirm", outcome.confirm), ("response", outcome.response)]
        if outcome.missing is not None:
            rows.append(("delivery", outcome.delivery))
        return [_quantiles(name, quantiles) for name, quantiles in rows]

    def _histogram(self) -> list[str]:
        filled = [index for index, count in enumerate(self.buckets) if count]
        if not filled:
            return []
        most = max(self.buckets)
        lines = [f"  {self.latency}, messages up to"]
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
        sizes = f"messages a burst p50 {size.p50:.0f}, max {size.max:.0f}"
        return [f"  ack bursts {size.count}: {sizes}; interval p50 {duration(interval.p50)}"]

    def _deliveries(self) -> list[str]:
        outcome = self.outcome
        if outcome.missing is None:
            return []
        again = f"duplicates {outcome.duplicates}  redelivered {outcome.redeliveries}"
        return [f"  delivered  missing {outcome.missing}  {again}  out of order {outcome.out_of_order}"]

    def _own_error(self) -> list[str]:
        outcome = self.outcome
        verdict = "good" if outcome.doubtful is None else f"doubtful: because {outcome.doubtful}"
        return [
            f"  own error  send delay {_short(outcome.send_delay)}",
            f"             loop lag   {_short(outcome.loop_lag)}",
            *_wrap(f"measurement {verdict}"),
        ]


EXPLANATION = (
    "confirm: sent to confirmed. response: from when it was meant to be sent.",
    "delivery: sent to delivered. Persistent messages; quantiles within 1 %.",
)


def text(address: str, product: str, probe: str, reports: Sequence[StreamReport]) -> str:
    """The whole report."""
    lines = [f"{probe} probe of {product} at {address}", ""]
    for report in reports:
        lines += [*report.lines(), ""]
    return "\n".join([*lines, *EXPLANATION])


def _row(name: str, cells: Sequence[str]) -> str:
    return f"  {name:<9}" + "".join(f"{cell:>{_COLUMNS}}" for cell in cells)


def _quantiles(name: str, quantiles: Quantiles) -> str:
    cells = [duration(value) for value in (quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max)]
    return _row(name, (str(quantiles.count), *cells))


def _short(quantiles: Quantiles) -> str:
    return f"p50 {duration(quantiles.p50)}  p99 {duration(quantiles.p99)}  max {duration(quantiles.max)}"


def _wrap(sentence: str, width: int = 76) -> list[str]:
    lines, line = [], " "
    for word in sentence.split():
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "   "
        line += f" {word}"
    return [*lines, line]
