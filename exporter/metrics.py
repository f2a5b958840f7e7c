"""What a metric is here: declared once as data, used by the code that fills it and by the reference page.

Absent stays absent: `Families.add` with None makes no sample, and a family without samples is not shown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

T = TypeVar("T")
Value = float | int | bool | None


class Kind(StrEnum):
    """Metric types, under the names of the client library."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "unknown"


UNITS = ("seconds", "bytes", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One metric.

    Attributes:
        name: as Prometheus stores it; counters end `_total`.
        labels: label names, in the order in which they are written.
        source: where the value comes from: an API path and field, or the part of ackscope that counts it.
        buckets: upper bounds of a histogram, without +Inf.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    source: str
    buckets: tuple[float, ...] = ()

    @property
    def stem(self) -> str:
        """The name without a counter's `_total`, as the client library wants it."""
        return self.name.removesuffix("_total") if self.kind is Kind.COUNTER else self.name

    @property
    def unit(self) -> str:
        """The base unit that the name tells; "" for plain numbers."""
        last = self.stem.rsplit("_", 1)[-1]
        return last if last in UNITS else ""

    def family(self) -> Metric:
        """A new, empty family."""
        return Metric(self.stem, self.help, self.kind.value)

    def counter(self, registry: CollectorRegistry) -> Counter:
        """A counter that lives in `registry`."""
        return Counter(self.stem, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """A classic histogram that lives in `registry`."""
        return Histogram(self.stem, self.help, self.labels, registry=registry, buckets=self.buckets)


def gauge(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a gauge."""
    return Spec(name=name, kind=Kind.GAUGE, help=text, labels=labels, source=source)


def counter(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a counter."""
    return Spec(name=name, kind=Kind.COUNTER, help=text, labels=labels, source=source)


def histogram(name: str, text: str, source: str, buckets: Sequence[float], *labels: str) -> Spec:
    """Declare a classic histogram."""
    return Spec(name=name, kind=Kind.HISTOGRAM, help=text, labels=labels, source=source, buckets=tuple(buckets))


class Reading(NamedTuple, Generic[T]):
    """A metric and how its value is read off an object; None where the object does not tell."""

    spec: Spec
    read: Callable[[T], Value]


class Families:
    """Gathers samples by metric, in the order of the declarations."""

    def __init__(self, specs: Iterable[Spec]) -> None:
        self._metrics = {spec.name: spec.family() for spec in specs}

    def add(self, spec: Spec, labels: dict[str, str], value: Value) -> None:
        """Add one sample; None adds nothing. One `labels` dict may serve many samples: it is not copied."""
        if value is not None:
            self._metrics[spec.name].add_sample(spec.name, labels, value)

    def result(self) -> list[Metric]:
        """The families that have samples."""
        return [metric for metric in self._metrics.values() if metric.samples]


def whole_sum(values: Iterable[Value]) -> float | None:
    """The sum, or None when a part of it is missing: a partial total looks like a drained queue."""
    total: float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
