"""Declarations of metrics as data, which the collectors and the reference page use.

Missing values stay missing: `MetricFamilies.add` with None adds no sample, and a family without samples is not shown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

T = TypeVar("T")
Value = float | int | bool | None


class MetricType(StrEnum):
    """Metric types, named as in the client library."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "unknown"


UNITS = ("seconds", "bytes", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Declaration of one metric.

    Attributes:
        name: name as Prometheus stores it; counters end in `_total`.
        labels: label names, in the order of output.
        source: source of the value: API path and field, or the part of ackscope that counts it.
        buckets: upper bounds of a histogram, without +Inf.
        since: first version of RabbitMQ that provides it; None if all supported versions do.
        until: first version that no longer provides it.
        untested: why a small single-node broker cannot make the metric appear or change; "" if it can.
    """

    name: str
    kind: MetricType
    help: str
    labels: tuple[str, ...]
    source: str
    buckets: tuple[float, ...] = ()
    since: tuple[int, ...] | None = None
    until: tuple[int, ...] | None = None
    untested: str = ""

    @property
    def stem(self) -> str:
        """The name without a counter's `_total`, as the client library expects."""
        return self.name.removesuffix("_total") if self.kind is MetricType.COUNTER else self.name

    @property
    def unit(self) -> str:
        """The base unit at the end of the name; "" if there is none."""
        last = self.stem.rsplit("_", 1)[-1]
        return last if last in UNITS else ""

    def family(self) -> "MetricFamily":
        """Create an empty family."""
        return MetricFamily(self)

    def counter(self, registry: CollectorRegistry) -> Counter:
        """Create a counter and register it in `registry`."""
        return Counter(self.stem, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """Create a classic histogram and register it in `registry`."""
        return Histogram(self.stem, self.help, self.labels, registry=registry, buckets=self.buckets)


def gauge(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a gauge."""
    return Spec(name=name, kind=MetricType.GAUGE, help=text, labels=labels, source=source)


def counter(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a counter."""
    return Spec(name=name, kind=MetricType.COUNTER, help=text, labels=labels, source=source)


def untyped(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a metric without a type, like the official plugin."""
    return Spec(name=name, kind=MetricType.UNTYPED, help=text, labels=labels, source=source)


def only_in(spec: Spec, since: tuple[int, ...] | None = None, until: tuple[int, ...] | None = None) -> Spec:
    """Limit a metric to RabbitMQ versions `since` <= version < `until`."""
    return replace(spec, since=since, until=until)


def untested_because(spec: Spec, why: str) -> Spec:
    """Mark a metric that a small single-node broker cannot make appear or change, with the reason."""
    return replace(spec, untested=why)


def histogram(name: str, text: str, source: str, buckets: Sequence[float], *labels: str) -> Spec:
    """Declare a classic histogram."""
    return Spec(name=name, kind=MetricType.HISTOGRAM, help=text, labels=labels, source=source, buckets=tuple(buckets))


class MetricReader(NamedTuple, Generic[T]):
    """A metric, and a function that reads its value from an object; None means no sample."""

    spec: Spec
    read: Callable[[T], Value]


class MetricFamily(Metric):
    """A family stored as two columns. All samples have the name of the family.

    For 200,000 samples, one object per sample would take seven times as long to create.

    Attributes:
        labels: label set of each sample; samples may share one dict.
        values: value of each sample.
    """

    def __init__(self, spec: Spec) -> None:
        self.sample_name = spec.name
        self.labels: list[dict[str, str]] = []
        self.values: list[float] = []
        super().__init__(spec.stem, spec.help, spec.kind.value)

    @property
    def samples(self) -> list[Sample]:
        """Samples in the type of the client library, created at every access."""
        return [Sample(self.sample_name, *row) for row in zip(self.labels, self.values, strict=True)]

    @samples.setter
    def samples(self, samples: list[Sample]) -> None:
        self.labels = [sample.labels for sample in samples]
        self.values = [sample.value for sample in samples]


class MetricFamilies:
    """Collects samples by metric, in the order of the declarations."""

    def __init__(self, specs: Iterable[Spec]) -> None:
        # A family is created with its first sample, because most declarations have no samples.
        self._metrics: dict[str, MetricFamily | None] = dict.fromkeys(spec.name for spec in specs)

    def add(self, spec: Spec, labels: dict[str, str], value: Value) -> None:
        """Add one sample; None adds nothing. `labels` is not copied and may be shared by several samples."""
        if value is not None:
            family = self._metrics[spec.name]
            if family is None:
                family = self._metrics[spec.name] = spec.family()
            family.labels.append(labels)
            family.values.append(value)

    def result(self) -> list[Metric]:
        """Return the families that have samples."""
        return [family for family in self._metrics.values() if family is not None]


def whole_sum(values: Iterable[Value]) -> float | None:
    """Return the sum, or None if any value is missing, because a partial sum would look like a drained queue."""
    total: float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
