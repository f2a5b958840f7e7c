"""The cluster in the last ten minutes, from the samples that the broker itself keeps.

What comes and goes is over when somebody looks. The management plugin samples the counters of all channels together,
and memory and disk of each node, every 5 s, and keeps the samples for 10 min (`global` and `basic` of
`sample_retention_policies`). Their cost does not depend on the number of queues: 7 ms and 71 kB more than an overview,
and 5 ms and 10 kB for a node if only these two columns are requested (all columns: 19 ms, 163 kB; measured on 4.3.6).
So they are read once a minute. The broker keeps no samples of alarms, nor of the state of connections.
Source: https://www.rabbitmq.com/docs/management#statistics-interval, https://www.rabbitmq.com/docs/http-api-reference
"""

from itertools import pairwise
from typing import Any

from ackscope.errors import BrokerError
from ackscope.past import ClusterPast, NodePast
from exporter.broker.client import ManagementClient
from exporter.broker.samples import samples_of

EVERY = 60.0
"""Seconds between two readings of the samples."""
AFTER_FAILURE = 600.0
"""The same after a reading that failed: the samples are additional, and the overview waits for them."""

_AGE, _STEP = 600, 5
_TIMEOUT = 2.0
_COLUMNS = "name,mem_used_details,disk_free_details"


def read_past(client: ManagementClient, ahead: float) -> ClusterPast | None:
    """Return what the broker sampled; None if it keeps no samples.

    Args:
        client: sends the requests.
        ahead: seconds by which the broker's clock is ahead of ours.

    Raises:
        BrokerError: as the client does.
    """
    overview = _get(client, "/api/overview", {"msg_rates_age": _AGE, "msg_rates_incr": _STEP})
    stats = overview.get("message_stats") if isinstance(overview, dict) else None
    if not isinstance(stats, dict):
        return None
    published, delivered = (samples_of(stats.get(f"{name}_details")) for name in ("publish", "deliver_get"))
    stamps = sorted(published)
    if len(stamps) < 2 or any(newer - older != _STEP * 1000 for older, newer in pairwise(stamps)):
        return None
    nodes = _get(client, "/api/nodes", {"columns": _COLUMNS, "node_stats_age": _AGE, "node_stats_incr": _STEP})
    return ClusterPast(
        begin=stamps[0] / 1000 - ahead,
        step=float(_STEP),
        published=tuple(published[stamp] for stamp in stamps),
        delivered=tuple(delivered.get(stamp, 0) for stamp in stamps),
        nodes=tuple(_node(each) for each in (nodes if isinstance(nodes, list) else ()) if _has_name(each)),
    )


def _get(client: ManagementClient, path: str, params: dict[str, str | int]) -> Any:
    return client.request(path, params, timeout=_TIMEOUT).body


def _has_name(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str)


def _node(item: dict[str, Any]) -> NodePast:
    # Before its first sample a node is padded with zeros.
    memory, disk = (
        [value for value in samples_of(item.get(f"{name}_details")).values() if value]
        for name in ("mem_used", "disk_free")
    )
    return NodePast(name=item["name"], mem_used=max(memory, default=None), disk_free=min(disk, default=None))


class PastReader:
    """Reads the samples once a minute, and less often if that fails."""

    def __init__(self) -> None:
        self._due_at: float | None = None

    def read(self, client: ManagementClient, now: float, ahead: float) -> ClusterPast | None:
        """Return the samples if they are due; None otherwise, and if they cannot be read.

        Args:
            client: sends the requests.
            now: by the monotonic clock, in seconds.
            ahead: seconds by which the broker's clock is ahead of ours.
        """
        if self._due_at is not None and now < self._due_at:
            return None
        try:
            found = read_past(client, ahead)
        except BrokerError:
            self._due_at = now + AFTER_FAILURE
            return None
        self._due_at = now + EVERY
        return found
