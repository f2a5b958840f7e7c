"""Shovels and federation links with their states (`/api/shovels`, `/api/federation-links`).

The official plugins only count links by state.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import Link
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, Spec, gauge, untested_because

_LABELS = ("cluster", "kind", "vhost", "link", "upstream", "local", "node")
_API = "/api/shovels, /api/federation-links"

UP = gauge(
    "ackscope_link_up",
    "1 while the link is running (kind: shovel, federation), 0 in any other state.",
    f"{_API} state, status",
    *_LABELS,
)
STATE = gauge(
    "ackscope_link_state",
    "1 for the current state of the link, 0 for the others.",
    f"{_API} state, status",
    *_LABELS,
    "state",
)
INFO = gauge(
    "ackscope_link_info",
    "Type of the link (static, dynamic; exchange, queue) and the two ends of a shovel; always 1.",
    f"{_API} type, src_uri, dest_uri",
    *_LABELS,
    "type",
    "source",
    "destination",
)
DYNAMIC = gauge(
    "rabbitmq_shovel_dynamic",
    "Dynamic shovels by state (status).",
    "/api/shovels type, state",
    "cluster",
    "status",
)
STATIC = untested_because(
    gauge(
        "rabbitmq_shovel_static",
        "Static shovels by state (status).",
        "/api/shovels type, state",
        "cluster",
        "status",
    ),
    "static shovels are set in the broker's configuration file; the lab creates dynamic ones",
)
FEDERATION = gauge(
    "rabbitmq_federation_links",
    "Federation links by state (status).",
    "/api/federation-links status",
    "cluster",
    "status",
)

SPECS = (UP, STATE, INFO, DYNAMIC, STATIC, FEDERATION)

_STATES: Mapping[str, tuple[str, ...]] = {
    "shovel": ("starting", "running", "terminated"),
    "federation": ("starting", "running", "error", "shutdown"),
}
"""Kind -> states reported even without a link in them; other states appear with the first link."""


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters; a cluster without links of a kind has no samples of it."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        for link in selection.of(snapshot.cluster).links.shown:
            _one(families, snapshot.cluster, link)
        links = snapshot.links.value or ()
        shovels = [link for link in links if link.kind == "shovel"]
        _count(families, DYNAMIC, snapshot.cluster, [link for link in shovels if link.type == "dynamic"])
        _count(families, STATIC, snapshot.cluster, [link for link in shovels if link.type == "static"])
        _count(families, FEDERATION, snapshot.cluster, [link for link in links if link.kind == "federation"])
    return families.result()


def _one(families: MetricFamilies, cluster: str, link: Link) -> None:
    labels = {
        "cluster": cluster,
        "kind": link.kind,
        "vhost": link.vhost or "",
        "link": link.name,
        "upstream": link.upstream or "",
        "local": link.local or "",
        "node": link.node or "",
    }
    what = {"type": link.type or "", "source": link.source or "", "destination": link.destination or ""}
    families.add(INFO, {**labels, **what}, 1)
    if link.state is None:
        return
    families.add(UP, labels, int(link.state == "running"))
    for state in dict.fromkeys((*_STATES.get(link.kind, ()), link.state)):
        families.add(STATE, {**labels, "state": state}, int(state == link.state))


def _count(families: MetricFamilies, spec: Spec, cluster: str, links: Sequence[Link]) -> None:
    if not links or any(link.state is None for link in links):
        return
    states = Counter(link.state or "" for link in links)
    for state in dict.fromkeys((*_STATES[links[0].kind], *sorted(states))):
        families.add(spec, {"cluster": cluster, "status": state}, states[state])


COLLECTOR = Collector(SPECS, collect)
