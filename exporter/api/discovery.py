"""`/api/v1/discovery`: what was discovered. Pure."""

from ackscope.clock import Instant
from exporter.api.documents import Document
from exporter.discovery.kubernetes import DiscoveryStatus
from exporter.discovery.objects import DiscoveredCluster


def discovery_document(status: DiscoveryStatus, now: Instant) -> Document:
    """Return the state of discovery, without credentials."""
    return {
        "now": now.iso(),
        "enabled": status.enabled,
        "complete": status.complete,
        "error": status.error,
        "age_seconds": status.age,
        "objects": [
            {
                "namespace": it.namespace,
                "name": it.name,
                "cluster": it.cluster,
                "watched": it.reason is None,
                "reason": it.reason,
                "management": _management(it),
            }
            for it in status.objects
        ],
    }


def _management(item: DiscoveredCluster) -> str | None:
    return None if item.settings is None else item.settings.access.address().url
