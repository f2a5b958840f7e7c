"""Metrics of the OTLP export."""

from prometheus_client.core import Metric

from ackscope.clock import Instant
from exporter.exposition.specs import MetricFamilies, counter, gauge, untested_because
from exporter.otlp.sender import OtlpStats

_SOURCE = "otlp.endpoint"
_RECEIVER = "needs a collector, as in tests/unit/exporter/otlp"

EXPORTS = untested_because(
    counter("ackscope_otlp_exports_total", "Exports over OTLP by result: success, failure.", _SOURCE, "result"),
    _RECEIVER,
)
AGE = untested_because(
    gauge(
        "ackscope_otlp_last_success_age_seconds",
        "Time since the collector last accepted all metrics; no sample before.",
        _SOURCE,
    ),
    _RECEIVER,
)

SPECS = (EXPORTS, AGE)


def collect(stats: OtlpStats | None, now: Instant) -> list[Metric]:
    """Metric families; none if nothing is sent."""
    families = MetricFamilies(SPECS)
    if stats is not None:
        families.add(EXPORTS, {"result": "success"}, stats.successes)
        families.add(EXPORTS, {"result": "failure"}, stats.failures)
        families.add(AGE, {}, None if stats.last_success is None else now.since(stats.last_success))
    return families.result()
