"""Makes the metrics of rabbitmq_exporter from our snapshots, with its labels and without its false zeros."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from prometheus_client.core import Metric

from ackscope.snapshot import FAMILIES, Connection, Queue, Snapshot
from exporter.exposition.cardinality.selection import OTHER, SelectedObjects, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.compat import table
from exporter.exposition.compat.table import SELF, OldMetric
from exporter.exposition.specs import MetricFamilies, MetricType, Spec, Value

SPECS: tuple[Spec, ...] = tuple(old.spec for old in table.OLD_METRICS)

_MODULES = {
    "overview": "overview",
    "node": "nodes",
    "queue": "queues",
    "exchange": "exchanges",
    "connections": "connections",
    "memory": "memory",
    "shovel": "links",
    "federation": "links",
}
"""Module name of rabbitmq_exporter -> endpoint family."""


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters, with the same selection and remainder as elsewhere."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        selected = selection.of(snapshot.cluster)
        _up(families, snapshot)
        _overview(families, snapshot)
        _queues(families, snapshot.cluster, selected.queues)
        _exchanges(families, snapshot, selected.exchanges)
        _connections(families, snapshot.cluster, selected.connections)
        _nodes(families, snapshot)
        _links(families, snapshot)
    return families.result()


def value_at(item: Any, path: str) -> Value:
    """Return the number at a path: an attribute, a mapping key, or the length of a tuple; None if there is none.

    `setting.NAME` reads an effective queue setting; None too if only the figures of the queue are known.
    """
    if path.startswith("setting.") and isinstance(item, Queue):
        if not item.settings_known:
            return None
        found = item.setting(path.removeprefix("setting."))
        return found if isinstance(found, int) else None
    first, _, remainder = path.partition(".")
    found = getattr(item, first)
    if remainder:
        found = found.get(remainder) if isinstance(found, Mapping) else getattr(found, remainder)
    if isinstance(found, tuple):
        return len(found)
    return int(found) if isinstance(found, bool) else found


def _add(families: MetricFamilies, rows: Sequence[OldMetric], labels: dict[str, str], item: Any) -> None:
    for old in rows:
        families.add(old.spec, labels, value_at(item, old.path))


def _add_chosen(
    families: MetricFamilies,
    rows: Sequence[OldMetric],
    labels: dict[str, str],
    selected: SelectedObjects[Any],
    item: Any,
) -> None:
    for old in rows:
        counts = old.spec.kind is MetricType.COUNTER and old.path.startswith("stats.")
        value = selected.count(item, item.key, old.path) if counts else value_at(item, old.path)
        families.add(old.spec, labels, value)


def _add_rest(
    families: MetricFamilies, rows: Sequence[OldMetric], labels: dict[str, str], selected: SelectedObjects[Any]
) -> None:
    if selected.omitted:
        for old in rows:
            families.add(old.spec, labels, selected.remainder.get(old.path))


def _up(families: MetricFamilies, snapshot: Snapshot) -> None:
    overview = snapshot.overview.value
    labels = {"cluster": snapshot.cluster, "node": (overview.node if overview else None) or ""}
    polled = {
        module: snapshot.parts[family]
        for module, family in _MODULES.items()
        if snapshot.parts[family].at is not None or snapshot.parts[family].error is not None
    }
    if not polled:
        return
    parts = [snapshot.parts[name] for name in FAMILIES]
    families.add(table.UP.spec, labels, int(all(part.error is None for part in parts)))
    for module, part in polled.items():
        families.add(table.MODULE_UP.spec, {**labels, "module": module}, int(part.error is None))
        families.add(table.MODULE_SECONDS.spec, {**labels, "module": module}, part.seconds)


def _overview(families: MetricFamilies, snapshot: Snapshot) -> None:
    overview = snapshot.overview.value
    if overview is None:
        return
    _add(families, table.OVERVIEW, {"cluster": snapshot.cluster}, overview)
    if overview.rabbitmq_version is not None:
        labels = {
            "rabbitmq": overview.rabbitmq_version,
            "erlang": overview.erlang_version or "",
            "node": overview.node or "",
            "cluster": snapshot.cluster,
        }
        families.add(table.VERSION.spec, labels, 1)


def _queues(families: MetricFamilies, cluster: str, selected: SelectedObjects[Queue]) -> None:
    for queue in selected.shown:
        labels = {
            "cluster": cluster,
            "vhost": queue.vhost,
            "queue": queue.name,
            "durable": "" if queue.durable is None else str(queue.durable).lower(),
            "policy": queue.policy or "",
            "self": SELF,
        }
        _add_chosen(families, table.QUEUES, labels, selected, queue)
        if queue.state is not None:
            families.add(table.QUEUE_STATE.spec, {**labels, "state": queue.state}, int(queue.state == "running"))
    remainder = {"cluster": cluster, "vhost": "", "queue": OTHER, "durable": "", "policy": "", "self": SELF}
    _add_rest(families, table.QUEUES, remainder, selected)


def _exchanges(families: MetricFamilies, snapshot: Snapshot, selected: SelectedObjects[Any]) -> None:
    for exchange in selected.shown:
        labels = {"cluster": snapshot.cluster, "vhost": exchange.vhost, "exchange": exchange.name}
        _add_chosen(families, table.EXCHANGES, labels, selected, exchange)
    _add_rest(families, table.EXCHANGES, {"cluster": snapshot.cluster, "vhost": "", "exchange": OTHER}, selected)


def _connections(families: MetricFamilies, cluster: str, selected: SelectedObjects[Connection]) -> None:
    """Add connections. Those with equal labels are summed, as in rabbitmq_exporter."""
    groups: defaultdict[tuple[str, ...], list[Connection]] = defaultdict(list)
    for it in selected.shown:
        groups[it.vhost or "", it.node or "", it.peer_host or "", it.user or ""].append(it)
    for (vhost, node, peer, user), members in groups.items():
        labels = {
            "cluster": cluster,
            "vhost": vhost,
            "node": node,
            "peer_host": peer,
            "user": user,
            "self": SELF,
        }
        for old in table.CONNECTIONS:
            values = [attrgetter(old.path)(member) for member in members]
            families.add(old.spec, labels, None if None in values else sum(values))
        states = [member.state or "" for member in members]
        for state in sorted(set(states)):
            with_state = {**{key: labels[key] for key in labels if key != "self"}, "state": state, "self": SELF}
            families.add(table.CONNECTION_STATUS.spec, with_state, states.count(state))
    remainder = {"cluster": cluster, "vhost": "", "node": "", "peer_host": OTHER, "user": "", "self": SELF}
    _add_rest(families, table.CONNECTIONS, remainder, selected)


def _nodes(families: MetricFamilies, snapshot: Snapshot) -> None:
    for node in snapshot.nodes.value or ():
        labels = {"cluster": snapshot.cluster, "node": node.name, "self": SELF}
        for old in table.NODES:
            found = value_at(node, old.path)
            milliseconds = old.path == "uptime_seconds" and found is not None
            families.add(old.spec, labels, found * 1000 if milliseconds and found is not None else found)
    for memory in snapshot.memory.value or ():
        labels = {"cluster": snapshot.cluster, "node": memory.node, "self": SELF}
        for old in table.MEMORY:
            families.add(old.spec, labels, memory.parts.get(old.path))
        _add(families, table.MEMORY_TOTALS, labels, memory)


def _links(families: MetricFamilies, snapshot: Snapshot) -> None:
    """Links that differ only in what has no label, such as a shovel that two nodes report, are one series."""
    added: set[tuple[str, ...]] = set()
    for link in snapshot.links.value or ():
        if link.state is None:
            continue
        common = {"cluster": snapshot.cluster, "vhost": link.vhost or ""}
        if link.kind == "shovel":
            what = {"shovel": link.name, "type": link.type or "", "self": SELF, "state": link.state}
            spec, labels = table.SHOVEL.spec, {**common, **what}
        else:
            ends = {
                "node": link.node or "",
                "queue": (link.local or "") if link.type == "queue" else "",
                "exchange": (link.local or "") if link.type == "exchange" else "",
                "upstream": link.upstream or "",
                "self": SELF,
                "status": link.state,
            }
            spec, labels = table.FEDERATION.spec, {**common, **ends}
        if (key := (spec.name, *labels.values())) not in added:
            added.add(key)
            families.add(spec, labels, 1)


COLLECTOR = Collector(SPECS, collect)
