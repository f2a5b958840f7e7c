"""Metrics of one on-demand run for `/probe`, named like those of the blackbox exporter. Pure."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.core import Metric

from exporter.exposition.specs import MetricFamilies, gauge

_SOURCE = "/probe, one run"
_STATS = ("p50", "p90", "p99", "max")
_STREAM = ("stream", "queue_type")

SUCCESS = gauge(
    "probe_success",
    "1 if the run, or the read of a target, was complete and successful; debug=true shows more of a run.",
    _SOURCE,
)
DURATION = gauge("probe_duration_seconds", "Duration from connecting to cleanup.", _SOURCE)
DOUBTFUL = gauge("probe_doubtful", "1 if the probe itself was too late to measure well.", _SOURCE, *_STREAM)
MESSAGES = gauge("probe_messages", "Messages of the run by outcome.", _SOURCE, *_STREAM, "outcome")
CONFIRM = gauge("probe_confirm_seconds", "Confirm latency of the run: from sent to settled.", _SOURCE, *_STREAM, "stat")
DELIVERY = gauge(
    "probe_delivery_seconds", "Delivery latency of the run: from sent to delivered.", _SOURCE, *_STREAM, "stat"
)
SEND_DELAY = gauge(
    "probe_send_delay_seconds",
    "From the scheduled send time to sent, over the run: the probe's own error.",
    _SOURCE,
    *_STREAM,
    "stat",
)
STEP = gauge("probe_step_seconds", "Duration of a timed step, over the run.", _SOURCE, *_STREAM, "step", "stat")
STEP_FAILURES = gauge("probe_step_failures", "Failed steps of the run.", _SOURCE, *_STREAM, "step")
ROUND_TRIP = gauge(
    "probe_round_trip_seconds",
    "From an ack to the next delivery, as the prefetch sweep measured it.",
    _SOURCE,
    "queue_type",
)
RECOMMENDED = gauge(
    "probe_prefetch_recommended_messages",
    "Recommended prefetch, 0 for no limit; no sample if the sweep recommends none; debug=true says why.",
    _SOURCE,
    "queue_type",
)

SPECS = (
    *(SUCCESS, DURATION, DOUBTFUL, MESSAGES, CONFIRM, DELIVERY, SEND_DELAY),
    *(STEP, STEP_FAILURES, ROUND_TRIP, RECOMMENDED),
)
_QUANTILES = ((CONFIRM, "confirm"), (DELIVERY, "delivery"), (SEND_DELAY, "send_delay"))


def run_metrics(document: Mapping[str, Any] | None, *, success: bool, seconds: float) -> list[Metric]:
    """Return the metric families of one run.

    Args:
        document: output of `ackscope probe --json`; None if there was none.
        success: whether the exit code was 0.
        seconds: duration of the run.
    """
    families = MetricFamilies(SPECS)
    families.add(SUCCESS, {}, int(success))
    families.add(DURATION, {}, seconds)
    report = document or {}
    for stream in report.get("streams", ()):
        _stream(families, stream)
    for sweep in report.get("sweeps", ()):
        labels = {"queue_type": sweep["queue_type"]}
        families.add(ROUND_TRIP, labels, sweep["round_trip"])
        families.add(RECOMMENDED, labels, sweep["recommended"])
    return families.result()


def _stream(families: MetricFamilies, stream: Mapping[str, Any]) -> None:
    labels = {"stream": stream["stream"], "queue_type": stream["queue_type"]}
    families.add(DOUBTFUL, labels, int(stream["doubtful"] is not None))
    if any(stream["outcomes"].values()):
        for outcome, number in stream["outcomes"].items():
            families.add(MESSAGES, {**labels, "outcome": outcome}, number)
    for spec, field in _QUANTILES:
        for stat in _STATS:
            families.add(spec, {**labels, "stat": stat}, stream[field][stat])
    for name, step in stream["steps"].items():
        families.add(STEP_FAILURES, {**labels, "step": name}, step["failures"])
        for stat in _STATS:
            families.add(STEP, {**labels, "step": name, "stat": stat}, step["seconds"][stat])
