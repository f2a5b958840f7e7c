"""Counters of exchanges of a broker without statistics, from the Prometheus endpoints of all nodes. Pure.

From 4.0 on each node counts what its channels published to each exchange, and what of that no queue took. A node has no
row for an exchange to which none of its channels published. A message that reaches several queues is routed once here;
the management API counts its copies. Seen on 4.0.5 and 4.3.6.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ackscope.counters import MessageStats
from ackscope.topology import Exchange

EXCHANGE_FAMILIES = ("exchange_metrics",)

EXCHANGE_LIST_FAMILIES = ("exchange_names",)
"""What lists exchanges with their types, where no management API does."""

EXCHANGE_NAME = "rabbitmq_cluster_exchange_name"
"""Metric with one row for each exchange of the cluster, from each node."""

EXCHANGE_COUNTERS: Mapping[str, str] = {
    "exchange_messages_published_total": "publish_in",
    "exchange_messages_unroutable_dropped_total": "drop_unroutable",
    "exchange_messages_unroutable_returned_total": "return_unroutable",
}
"""Metric -> counter of an exchange."""

ExchangeCounters = Mapping[tuple[str, str], Mapping[str, int]]
"""Virtual host and name of an exchange -> counter -> messages."""


class ExchangeCounts:
    """Adds the counters to the listed exchanges. Not thread-safe. An unchanged exchange stays the same object."""

    def __init__(self) -> None:
        self._joined: dict[tuple[str, str], tuple[Exchange, Exchange]] = {}
        self._listed: dict[tuple[str, str], Exchange] = {}

    def listed(self, types: Mapping[tuple[str, str], str]) -> tuple[Exchange, ...]:
        """Return the exchanges that the endpoints list: of these, only virtual host, name and type are known."""
        self._listed = {key: self._of_type(key, types[key]) for key in sorted(types)}
        return tuple(self._listed.values())

    def _of_type(self, key: tuple[str, str], kind: str) -> Exchange:
        known = self._listed.get(key)
        return known if known is not None and known.type == kind else Exchange(vhost=key[0], name=key[1], type=kind)

    def counted(self, listed: Iterable[Exchange], nodes: Iterable[ExchangeCounters]) -> tuple[Exchange, ...] | None:
        """Return the exchanges with their counters, those without a row with zeros; None if no node has a row.

        Args:
            listed: exchanges of the management API, or of `listed`.
            nodes: what every node counted.
        """
        found = [each for each in nodes if each]
        if not found:
            return None
        joined = {exchange.key: self._counted(exchange, found) for exchange in listed}
        self._joined = joined
        return tuple(exchange for _, exchange in joined.values())

    def _counted(self, exchange: Exchange, nodes: list[ExchangeCounters]) -> tuple[Exchange, Exchange]:
        rows = [each[exchange.key] for each in nodes if exchange.key in each]
        if any(name not in row for row in rows for name in EXCHANGE_COUNTERS.values()):
            # A sum without one of its parts is unknown.
            return exchange, exchange
        sums = {name: sum(row[name] for row in rows) for name in EXCHANGE_COUNTERS.values()}
        routed = max(0, sums["publish_in"] - sums["drop_unroutable"] - sums["return_unroutable"])
        stats = MessageStats(publish_out=routed, **sums)
        known = self._joined.get(exchange.key)
        if known is not None and known[0] is exchange and known[1].stats == stats:
            return known
        return exchange, replace(exchange, stats=stats)
