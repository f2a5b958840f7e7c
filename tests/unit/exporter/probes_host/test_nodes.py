from ackscope.snapshot import Queue
from exporter.probes_host.nodes import assign_nodes, assign_outcome_nodes, probe_nodes
from tests.unit.exporter.made import burst, message, outcome, part, small, step

QUEUES = (
    Queue(vhost="/", name="ackscope.probe.confirm.quorum", type="quorum", node="rabbit@old", leader="rabbit@two"),
    Queue(vhost="/", name="ackscope.probe.delivery.classic", type="classic", node="rabbit@three"),
    Queue(vhost="/", name="ackscope.probe.lost", type="classic"),
    Queue(vhost="/", name="orders", node="rabbit@four"),
)


def nodes():
    """Where the queues above are."""
    return probe_nodes(small(queues=part(QUEUES)), "ackscope.probe")


def test_the_leader_counts_and_other_queues_do_not():
    """A quorum queue is on the node of its leader; queues of users are ignored."""
    expected = {
        ("/", "ackscope.probe.confirm.quorum"): "rabbit@two",
        ("/", "ackscope.probe.delivery.classic"): "rabbit@three",
    }

    assert expected == nodes()


def test_records_get_the_node_of_their_queue():
    """Messages, bursts and steps alike; one that knows its node keeps it."""
    placed = assign_nodes([message(node=""), message(node="rabbit@nine")], nodes(), "ackscope.probe")
    timed = step(probe="delivery", stream="classic", node="")

    assert ["rabbit@two", "rabbit@nine"] == [record.node for record in placed]
    assert ["rabbit@two"] == [record.node for record in assign_nodes([burst(node="")], nodes(), "ackscope.probe")]
    assert ["rabbit@three"] == [record.node for record in assign_nodes([timed], nodes(), "ackscope.probe")]
    assert [""] == [record.node for record in assign_nodes([message(node="", vhost="x")], nodes(), "ackscope.probe")]


def test_summaries_get_the_node_of_the_queue_they_name():
    """Unknown stays unknown."""
    placed = assign_outcome_nodes([outcome(), outcome(queue="elsewhere")], nodes())

    assert ["rabbit@three", ""] == [it.node for it in placed]


def test_probes_that_run_node_by_node_report_their_node_themselves():
    """A stream whose address leads to any node does not get their node."""
    known = probe_nodes(small(queues=part(QUEUES)), "ackscope.probe", ("confirm",))

    assert {("/", "ackscope.probe.delivery.classic"): "rabbit@three"} == known


def test_without_a_snapshot_nothing_is_known():
    """Before the first poll every node is unknown."""
    assert {} == probe_nodes(None, "ackscope.probe")
