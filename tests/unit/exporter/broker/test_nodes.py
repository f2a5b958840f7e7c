"""Nodes of recorded brokers."""

import pytest

from ackscope.snapshot import Node
from ackscope.topology import NodeLink
from exporter.broker.families import FAMILIES
from tests.unit.exporter.broker.server import VERSIONS, fixture


def decoded(version):
    """The nodes of a recorded payload."""
    value, _ = FAMILIES["nodes"].decode(fixture(version, "nodes"), None)
    return value


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes(version):
    """One node, with its resources in base units."""
    (node,) = decoded(version)

    assert ("lab1@localhost", True, False, False) == (node.name, node.running, node.mem_alarm, node.disk_free_alarm)
    assert 10 < node.uptime_seconds < 3600
    assert 50_000_000 < node.mem_used < node.mem_limit
    assert (version, "rss", 0, ()) == (node.rabbitmq_version, node.memory_strategy, node.backlog, node.links)
    assert (6, 0) == (node.churn["queue_declared"], node.churn["queue_deleted"])
    assert min(node.gc_num, node.gc_bytes_reclaimed, node.context_switches) > 1000


def test_times_of_io_are_in_seconds():
    """3.10 sends milliseconds per operation, averaged since its start; later versions send zeros."""
    (node,) = decoded("3.10.8")

    assert (1049, 244878, pytest.approx(0.000578, rel=0.01)) == (
        node.io_sync_count,
        node.io_write_bytes,
        node.io_sync_avg_time,
    )


def test_links_to_cli_tools_are_ignored():
    """CLI tools join the cluster for a moment, under node names of their own."""
    link = {"peer_addr": "127.0.0.1", "recv_bytes": 7, "send_bytes": 9}
    payload = [
        {"name": "a", "cluster_links": [{**link, "name": "b"}, {**link, "name": "rabbitmqcli-857-b"}]},
        {"name": "b", "cluster_links": [{**link, "name": "a", "recv_bytes": "undefined"}, {}]},
    ]

    value, gaps = FAMILIES["nodes"].decode(payload, (4, 0))

    assert (
        (
            Node(name="a", links=(NodeLink(peer="b", recv_bytes=7, send_bytes=9),)),
            Node(name="b", links=(NodeLink(peer="a", send_bytes=9),)),
        ),
        {"recv_bytes": 1, "peer": 1},
    ) == (value, gaps)


def test_a_backlog_with_a_gap_has_no_sum():
    """It would be too low."""
    payload = [{"name": "a", "metrics_gc_queue_length": {"x": 4, "y": "undefined"}}]

    value, gaps = FAMILIES["nodes"].decode(payload, (4, 0))

    assert ((Node(name="a"),), {"metrics_gc_queue_length": 1}) == (value, gaps)


def test_a_node_is_read_by_its_own_version():
    """During an upgrade the overview may report the old version; no false zero appears."""
    (node,), _ = FAMILIES["nodes"].decode(fixture("4.0.5", "nodes"), (3, 10))

    assert node.sockets_total is None


def test_a_node_that_is_down_has_a_name_only():
    """What `/api/nodes` contains for a node that is down, as seen on 3.10 to 4.3."""
    payload = [{"name": "rabbit@b", "type": "disc", "running": False, "cluster_links": []}]

    assert ((Node(name="rabbit@b", running=False),), {}) == FAMILIES["nodes"].decode(payload, (4, 0))
