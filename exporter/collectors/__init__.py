"""Every collector, by name: a file here and a line in this table."""

from exporter.collectors import channels, connections, consumers, health, nodes, overview, queues
from exporter.collectors.contract import Collector

COLLECTORS: dict[str, Collector] = {
    "overview": overview.COLLECTOR,
    "nodes": nodes.COLLECTOR,
    "queues": queues.COLLECTOR,
    "channels": channels.COLLECTOR,
    "consumers": consumers.COLLECTOR,
    "connections": connections.COLLECTOR,
    "health": health.COLLECTOR,
}
