"""What a metric is here: declared once as data, used by the code that fills it and by the reference page.

Absent stays absent: `Families.add` with None makes no sample, and a family without samples is not shown.
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
        since: the first version of RabbitMQ that tells it; None where every supported one does.
        until: the first version that no longer does.
        still: why a small broker of one node cannot make it appear or move; "" where it can.
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
        """The name without a counter's `_total`, as the client library wants it."""
        return self.name.removesuffix("_total") if self.kind is MetricType.COUNTER else self.name

    @property
    def unit(self) -> str:
        """The base unit that the name tells; "" for plain numbers."""
        last = self.stem.rsplit("_", 1)[-1]
        return last if last in UNITS else ""

    def family(self) -> "MetricFamily":
        """A new, empty family."""
        return MetricFamily(self)

    def counter(self, registry: CollectorRegistry) -> Counter:
        """A counter that lives in `registry`."""
        return Counter(self.stem, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """A classic histogram that lives in `registry`."""
        return Histogram(self.stem, self.help, self.labels, registry=registry, buckets=self.buckets)


def gauge(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a gauge."""
    return Spec(name=name, kind=MetricType.GAUGE, help=text, labels=labels, source=source)


def counter(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a counter."""
    return Spec(name=name, kind=MetricType.COUNTER, help=text, labels=labels, source=source)


def untyped(name: str, text: str, source: str, *labels: str) -> Spec:
    """Declare a metric without a type, where the official plugin declares it so."""
    return Spec(name=name, kind=MetricType.UNTYPED, help=text, labels=labels, source=source)


def only_in(spec: Spec, since: tuple[int, ...] | None = None, until: tuple[int, ...] | None = None) -> Spec:
    """The same metric, told by some versions of RabbitMQ only: from `since` on, before `until`."""
    return replace(spec, since=since, until=until)


def untested_because(spec: Spec, why: str) -> Spec:
    """The same metric, with the reason why a small broker of one node cannot make it appear or move."""
    return replace(spec, untested=why)


def histogram(name: str, text: str, source: str, buckets: Sequence[float], *labels: str) -> Spec:
    """Declare a classic histogram."""
    return Spec(name=name, kind=MetricType.HISTOGRAM, help=text, labels=labels, source=source, buckets=tuple(buckets))


class MetricReader(NamedTuple, Generic[T]):
    """A metric and how its value is read off an object; None where the object does not tell."""

    spec: Spec
    read: Callable[[T], Value]


class MetricFamily(Metric):
    """A family whose samples all bear its own name, kept as two columns.

    An object a sample costs seven times as much to make, at 200,000 of them.

    Attributes:
        labels: the label set of each sample; one dict may serve many samples.
        values: the value of each sample.
    """

    def __init__(self, spec: Spec) -> None:
        self.sample_name = spec.name
        self.labels: list[dict[str, str]] = []
        self.values: list[float] = []
        super().__init__(spec.stem, spec.help, spec.kind.value)

    @property
    def samples(self) -> list[Sample]:
        """The samples as the client library has them; made anew at every call."""
        return [Sample(self.sample_name, *row) for row in zip(self.labels, self.values, strict=True)]

    @samples.setter
    def samples(self, samples: list[Sample]) -> None:
        self.labels = [sample.labels for sample in samples]
        self.values = [sample.value for sample in samples]


class MetricFamilies:
    """Gathers samples by metric, in the order of the declarations."""

    def __init__(self, specs: Iterable[Spec]) -> None:
        # Made with their first sample: of most declarations a small part has any.
        self._metrics: dict[str, MetricFamily | None] = dict.fromkeys(spec.name for spec in specs)

    def add(self, spec: Spec, labels: dict[str, str], value: Value) -> None:
        """Add one sample; None adds nothing. One `labels` dict may serve many samples: it is not copied."""
        if value is not None:
            family = self._metrics[spec.name]
            if family is None:
                family = self._metrics[spec.name] = spec.family()
            family.labels.append(labels)
            family.values.append(value)

    def result(self) -> list[Metric]:
        """The families that have samples."""
        return [family for family in self._metrics.values() if family is not None]


def whole_sum(values: Iterable[Value]) -> float | None:
    """The sum, or None when a part of it is missing: a partial total looks like a drained queue."""
    total: float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
