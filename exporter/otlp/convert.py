"""The text of `/metrics` as OpenTelemetry data: the same names, labels and values.

The text is the source, so that both always agree: also about missing values and about objects without own series.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from typing import cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ackscope import __version__

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_NANO = 1_000_000_000


def convert(text: str, attributes: Mapping[str, str], began: float, wall: float) -> MetricsData:
    """Convert a page.

    Args:
        text: the page in the Prometheus text format.
        attributes: attributes of the resource.
        began: start of this process, when its counters were 0; seconds since 1970. Counters of a broker started with
            the broker, whose start is not known for each, so that a rate needs two exports.
        wall: time of the page.
    """
    start, at = int(began * _NANO), int(wall * _NANO)
    metrics = [metric for family in text_string_to_metric_families(text) for metric in _metrics(family, start, at)]
    scope = ScopeMetrics(InstrumentationScope("ackscope", __version__), metrics, "")
    return MetricsData([ResourceMetrics(Resource(dict(attributes)), [scope], "")])


def _metrics(family: Family, start: int, at: int) -> Iterator[Metric]:
    if family.type == "histogram":
        points = list(_histogram(family.samples, start, at))
        yield Metric(family.name, family.documentation, "", Histogram(points, _CUMULATIVE))
        return
    named: dict[str, list[NumberDataPoint]] = {}
    for sample in family.samples:
        point = NumberDataPoint(sample.labels, start if family.type == "counter" else 0, at, sample.value)
        named.setdefault(sample.name, []).append(point)
    for name, found in named.items():
        data = Sum(found, _CUMULATIVE, is_monotonic=True) if family.type == "counter" else Gauge(found)
        yield Metric(name, family.documentation, "", data)


def _histogram(samples: Iterable[Sample], start: int, at: int) -> Iterator[HistogramDataPoint]:
    """One point for each set of labels; OpenTelemetry counts each bucket alone, Prometheus all up to a bound."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    for labels, found in buckets.items():
        ordered = sorted(found)
        counts = [int(value) for _, value in ordered]
        yield HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=start,
            time_unix_nano=at,
            count=counts[-1],
            sum=sums.get(labels, 0.0),
            bucket_counts=[now - before for now, before in zip(counts, [0, *counts[:-1]], strict=True)],
            explicit_bounds=[bound for bound, _ in ordered if not isinf(bound)],
            # Unknown, and so not sent: the fields are optional in the protocol, but not in the type of the SDK.
            min=cast("float", None),
            max=cast("float", None),
        )
