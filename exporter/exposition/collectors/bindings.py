"""Bindings by source exchange (`/api/bindings`). An exchange without bindings drops its messages."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import Exchange
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge

BINDINGS = gauge(
    "rabbitmq_cluster_exchange_bindings",
    "Bindings whose source is this exchange. The default exchange has one per queue.",
    "/api/bindings source",
    "cluster",
    "vhost",
    "exchange",
    "type",
)
UNBOUND = gauge(
    "ackscope_exchanges_unbound",
    "User-declared exchanges without bindings: messages published to them are dropped or returned.",
    "/api/exchanges, /api/bindings source",
    "cluster",
)

SPECS = (BINDINGS, UNBOUND)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        bindings, exchanges = snapshot.bindings.value, snapshot.exchanges.value
        if bindings is None or exchanges is None:
            continue
        selected = selection.of(snapshot.cluster).exchanges
        shown = 0
        for exchange in selected.shown:
            number = bindings.counts.get(exchange.key, 0)
            shown += number
            families.add(
                BINDINGS, _labels(snapshot.cluster, exchange.vhost, exchange.name, exchange.type or ""), number
            )
        if selected.omitted:
            families.add(BINDINGS, _labels(snapshot.cluster, "", OTHER, ""), sum(bindings.counts.values()) - shown)
        unbound = sum(not bindings.counts.get(it.key) for it in exchanges if not _built_in(it))
        families.add(UNBOUND, {"cluster": snapshot.cluster}, unbound)
    return families.result()


def _labels(cluster: str, vhost: str, exchange: str, kind: str) -> dict[str, str]:
    return {"cluster": cluster, "vhost": vhost, "exchange": exchange, "type": kind}


def _built_in(exchange: Exchange) -> bool:
    """Whether the exchange is built in: the default exchange, reserved names, internal exchanges."""
    return not exchange.name or exchange.name.startswith("amq.") or bool(exchange.internal)


COLLECTOR = Collector(SPECS, collect)
