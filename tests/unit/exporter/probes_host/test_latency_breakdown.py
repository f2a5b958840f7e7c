import pytest

from exporter.probes_host.latency_breakdown import confirm_layers, target_node
from tests.unit.exporter.made import confirming, outcome


def reported(found):
    """Return the seconds of the known layers by layer and node."""
    return {(layer.name, layer.node): pytest.approx(layer.seconds) for layer in found if layer.seconds is not None}


def test_queues_on_one_node_are_compared_though_placement_names_it():
    """The unroutable stream has no queue, and so no node; it belongs to the same target all the same."""
    streams = [
        confirming("unroutable", 0.001),
        confirming("transient", 0.003, node="rabbit@one"),
        confirming("classic", 0.007, node="rabbit@one"),
    ]

    assert {("network+channel", ""): 0.001, ("queue", ""): 0.002, ("persist", ""): 0.004} == reported(
        confirm_layers(streams)
    )


def test_each_named_node_has_its_own_layers():
    """A queue says in its name which node it was made for."""
    streams = [
        confirming(stream, p50, node=node, queue=queue)
        for node, factor in (("rabbit@one", 1), ("rabbit@two", 2))
        for stream, p50, queue in (
            ("unroutable", 0.001 * factor, ""),
            ("transient", 0.003 * factor, f"ackscope.probe.confirm.transient@{node}"),
        )
    ]

    assert {
        ("network+channel", "rabbit@one"): 0.001,
        ("queue", "rabbit@one"): 0.002,
        ("network+channel", "rabbit@two"): 0.002,
        ("queue", "rabbit@two"): 0.004,
    } == reported(confirm_layers(streams))


def test_queues_on_several_nodes_are_not_compared():
    """The network between the nodes would look like a layer; the reason says so."""
    streams = [
        confirming("unroutable", 0.001),
        confirming("transient", 0.003, node="rabbit@one"),
        confirming("classic", 0.007, node="rabbit@two"),
    ]
    found = confirm_layers(streams)

    assert {("network+channel", ""): 0.001} == reported(found)
    assert {"its queues are on several nodes (rabbit@one, rabbit@two), so more than one layer differs"} == {
        layer.because for layer in found if layer.name in {"queue", "persist"}
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"queue": "", "node": "rabbit@one"}, "rabbit@one"),
        ({"queue": "ackscope.probe.delivery.classic", "node": "rabbit@one"}, ""),
        ({"queue": "mine@home.delivery.classic@rabbit@one", "node": "rabbit@two"}, "rabbit@one"),
    ],
)
def test_the_target_of_a_stream(changes, expected):
    """The target is where messages are sent to, wherever the leader of the queue is now."""
    assert expected == target_node(outcome(**changes))
