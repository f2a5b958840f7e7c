import threading

import pytest

from ackscope.clock import Instant
from ackscope.errors import BrokerError, Unreachable
from exporter.broker.families import FAMILIES
from exporter.broker.fetch import UNRESPONSIVE_RETRY_SECONDS
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import broker, json, serve

DEADLINE = 20
NODES = ("lab1@localhost", "lab2@localhost")


class SetClock:
    """A clock that the test sets."""

    mono = 1000.0

    def now(self):
        """The simulated time."""
        return Instant(wall=1.7e9 + self.mono, mono=self.mono)


def memory(node):
    """The memory endpoint of a node."""
    return f"/api/nodes/{node.replace('@', '%40')}/memory"


def cluster(release):
    """Routes of two nodes; the second one hangs."""
    return {
        "/api/overview": json({"rabbitmq_version": "4.3.6"}),
        "/api/nodes": json([{"name": node, "running": True} for node in NODES]),
        memory(NODES[0]): json({"memory": {"binary": 5}}),
        memory(NODES[1]): lambda request: release.wait(30),
    }


def test_a_node_that_hangs_is_skipped_for_a_while():
    """Each attempt costs a full timeout; the other node stays fresh."""
    release, clock = threading.Event(), SetClock()
    with serve(cluster(release)) as server:
        reader = BrokerReader(ManagementSettings(url=server.url, timeout=0.3), clock)
        reader.read("overview")
        reader.read("nodes")
        found = [reader.read("memory") for _ in range(3)]
        clock.mono += UNRESPONSIVE_RETRY_SECONDS + 1
        reader.read("memory")
        requests = [path for path in server.seen if path == memory(NODES[1])]
        release.set()
        reader.close()

    assert [[NODES[0]]] * 3 == [[node.node for node in reading.value] for reading in found]
    assert len(requests) == 2


def test_a_health_check_that_hangs_hides_no_other():
    """Like `node-is-quorum-critical` while a node of the cluster hangs; it is skipped for a while."""
    release = threading.Event()
    fine = json({"status": "ok"})
    checks = ("alarms", "local-alarms", "virtual-hosts", "ready-to-serve-clients", "is-in-service")
    routes = {f"/api/health/checks/{name}": fine for name in checks}
    routes["/api/health/checks/node-is-quorum-critical"] = lambda request: release.wait(30)
    with serve({**routes, "/api/overview": json({"rabbitmq_version": "4.3.6"})}) as server:
        reader = BrokerReader(ManagementSettings(url=server.url, timeout=1), SetClock())
        reader.read("overview")
        found = [{check.name: check.ok for check in reader.read("health").value} for _ in range(2)]
        requests = [path for path in server.seen if path.endswith("node-is-quorum-critical")]
        release.set()
        reader.close()

    assert [{**dict.fromkeys(checks, True), "node-is-quorum-critical": None}] * 2 == found
    assert len(requests) == 1


def test_a_broker_that_hangs_with_its_first_check_is_an_error():
    """No check is known then."""
    release = threading.Event()
    with serve({"/api/health/checks/alarms": lambda request: release.wait(30), "/api/overview": json({})}) as server:
        reader = BrokerReader(ManagementSettings(url=server.url, timeout=0.6), SetClock())
        reader.read("overview")
        with pytest.raises(BrokerError, match="no full answer"):
            reader.read("health")
        release.set()
        reader.close()


def test_without_known_nodes_a_per_node_family_fails():
    """An empty answer would look like a good one."""
    with serve({"/api/overview": json({}), "/api/nodes": json([])}) as server:
        reader = BrokerReader(ManagementSettings(url=server.url), SetClock())
        reader.read("overview")
        reader.read("nodes")
        with pytest.raises(BrokerError, match="no running node is known"):
            reader.read("memory")
        reader.close()


def test_costs_are_counted_by_family():
    """Seconds, requests and bytes, failures included."""
    with serve({"/api/overview": json({}), "/api/nodes": json({"error": "x", "reason": "boom"}, 500)}) as server:
        reader = BrokerReader(ManagementSettings(url=server.url), SetClock())
        reader.read("overview")
        with pytest.raises(BrokerError):
            reader.read("nodes")
        overview, nodes, queues = (reader.cost(name) for name in ("overview", "nodes", "queues"))
        reader.close()

    assert (1, 2) == (overview.requests, overview.received)
    assert nodes.requests == 1
    assert overview.seconds > 0
    assert nodes.seconds > 0
    assert (0.0, 0, 0) == queues


def test_a_node_that_freezes_during_its_checks_aborts_the_poll():
    """Some answered, then three in a row did not: the reading has failed, and the rest is not requested."""
    release = threading.Event()
    frozen = [
        f"/api/health/checks/{name}"
        for name in (
            "local-alarms",
            "virtual-hosts",
            "is-in-service",
            "ready-to-serve-clients",
            "node-is-quorum-critical",
        )
    ]
    routes = dict.fromkeys(frozen, lambda request: release.wait(30))
    routes["/api/health/checks/alarms"] = json({"status": "ok"})
    with serve({**routes, "/api/overview": json({"rabbitmq_version": "4.3.6"})}) as server:
        reader = BrokerReader(ManagementSettings(url=server.url, timeout=0.8), SetClock())
        reader.read("overview")
        with pytest.raises(Unreachable):
            reader.read("health")
        requests = [path for path in server.seen if path in frozen]
        release.set()
        reader.close()

    assert 3 == len(requests)


def test_families_that_are_read_one_after_the_other_share_a_connection():
    """A round is one client to the broker, not sixteen; concurrent readings have connections of their own."""
    clock = SetClock()
    with serve(broker("4.3.6")) as server:
        reader = BrokerReader(ManagementSettings(url=server.url), clock)
        for family in FAMILIES:
            reader.read(family)
        one_by_one = server.connections
        slow, begun, release = server.routes["/api/channels"], threading.Event(), threading.Event()

        def late(request):
            begun.set()
            release.wait(DEADLINE)
            slow(request)

        server.routes["/api/channels"] = late
        beside = threading.Thread(target=reader.read, args=("channels",))
        beside.start()
        begun.wait(DEADLINE)
        reader.read("nodes")
        release.set()
        beside.join()
        reader.close()

    assert (1, 2) == (one_by_one, server.connections)
