"""Metrics of the delivery of findings."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from exporter.delivery.worker import DeliveryStats
from exporter.exposition.specs import MetricFamilies, counter, gauge, untested_because

_SOURCE = "delivery"

SENT = counter("ackscope_delivery_sent_total", "Messages that the receiver accepted.", _SOURCE, "receiver")
FAILED = counter(
    "ackscope_delivery_failed_total",
    "Attempts that the receiver did not accept; what was not delivered waits.",
    _SOURCE,
    "receiver",
)
WAITING = gauge(
    "ackscope_delivery_waiting_findings",
    "Findings that the receiver does not know in their present state, those held back by quiet hours included.",
    _SOURCE,
    "receiver",
)
AGE = gauge(
    "ackscope_delivery_last_success_age_seconds",
    "Time since the receiver last accepted something; no sample before.",
    _SOURCE,
    "receiver",
)
DROPPED = untested_because(
    counter(
        "ackscope_delivery_dropped_findings_total",
        "Findings that were not recorded, or forgotten before delivery, because there were more than 1,000.",
        _SOURCE,
        "receiver",
    ),
    "needs more findings than a small broker has",
)

SPECS = (SENT, FAILED, WAITING, AGE, DROPPED)


def collect(stats: Mapping[str, DeliveryStats], now: Instant) -> list[Metric]:
    """Metric families; none without receivers."""
    families = MetricFamilies(SPECS)
    for receiver, it in stats.items():
        labels = {"receiver": receiver}
        families.add(SENT, labels, it.sent)
        families.add(FAILED, labels, it.failed)
        families.add(WAITING, labels, it.waiting)
        families.add(AGE, labels, None if it.last_success is None else now.since(it.last_success))
        families.add(DROPPED, labels, it.dropped)
    return families.result()
