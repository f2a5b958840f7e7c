"""Values of the collectors of the cluster and its nodes, for a handmade cluster."""

from ackscope.snapshot import Node
from exporter.exposition.collectors import nodes, overview
from tests.unit.exporter.exposition.collectors.reading import values
from tests.unit.exporter.made import part, small


def test_counters_that_the_broker_did_not_send_are_absent():
    """Before its first event the broker's counter is absent, and ours is too."""
    seen = values(overview.collect, small())

    assert seen[("rabbitmq_global_messages_received_total",)] == 10
    assert ("rabbitmq_global_messages_acknowledged_total",) not in seen
    assert seen[("rabbitmq_connections_opened_total",)] == 5
    assert ("rabbitmq_connections_closed_total",) not in seen


def test_identity_names_the_node_of_a_single_node_only():
    """With several nodes there is still one identity series, or joins on it would break."""
    two = small(nodes=part((Node(name="a"), Node(name="b"))))

    assert values(overview.collect, small())["rabbitmq_identity_info", "rabbit@one", "rabbit@shop", "aggregated"] == 1
    assert values(overview.collect, two)["rabbitmq_identity_info", "", "rabbit@shop", "aggregated"] == 1


def test_a_node_that_is_down_has_its_state_and_nothing_else():
    """A stopped node has the state 0 and no memory value."""
    down = small(nodes=part((Node(name="a", running=False),)))

    assert {("ackscope_node_running", "a"): 0} == {
        key: value for key, value in values(nodes.collect, down).items() if "a" in key
    }
