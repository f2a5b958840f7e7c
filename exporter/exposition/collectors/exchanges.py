"""Selected exchanges and the remainder (`/api/exchanges`); the default exchange has the name "".

The list only has counters of messages in and out. Confirmed, returned and dropped messages are counted by channel.
"""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import Exchange
from exporter.exposition.cardinality.emit import FieldMetric, LabelScheme, emit
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, counter, gauge

LABELS = ("cluster", "vhost", "exchange")
_API = "/api/exchanges"

INFO = gauge(
    "ackscope_exchange_info",
    "Type of the exchange and the policy in effect; always 1.",
    f"{_API} type, policy",
    *LABELS,
    "type",
    "policy",
)
EXCHANGES = gauge("ackscope_exchanges", "Exchanges by type, all exchanges included.", f"{_API} type", "cluster", "type")

_FIELD_METRICS = tuple(
    FieldMetric(counter(name, text, f"{_API} message_stats.{field}", *LABELS), f"stats.{field}")
    for name, text, field in (
        ("rabbitmq_exchange_messages_published_total", "Messages published to the exchange.", "publish_in"),
        (
            "ackscope_exchange_messages_routed_total",
            "Messages routed to queues: one for three counts as 3. Before 3.13 the default exchange adds lost ones.",
            "publish_out",
        ),
    )
)

SPECS = (INFO, EXCHANGES, *(it.spec for it in _FIELD_METRICS))


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        exchanges = snapshot.exchanges.value
        if exchanges is None:
            continue
        types = Counter(exchange.type or "unknown" for exchange in exchanges)
        for name, number in sorted(types.items()):
            families.add(EXCHANGES, {"cluster": snapshot.cluster, "type": name}, number)
        selected, naming = selection.of(snapshot.cluster).exchanges, _naming(snapshot.cluster)
        emit(families, selected, naming, _FIELD_METRICS)
        for exchange in selected.shown:
            what = {"type": exchange.type or "", "policy": exchange.policy or ""}
            families.add(INFO, {**naming.labels(exchange), **what}, 1)
    return families.result()


def _naming(cluster: str) -> LabelScheme[Exchange]:
    return LabelScheme(
        key=lambda exchange: exchange.key,
        labels=lambda exchange: {"cluster": cluster, "vhost": exchange.vhost, "exchange": exchange.name},
        other={"cluster": cluster, "vhost": "", "exchange": OTHER},
    )


COLLECTOR = Collector(SPECS, collect)
