import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import film, look, queue, stats, text

NODES = tuple(Node(name=f"rabbit@{name}", running=True) for name in ("one", "two", "three"))


def single(*, nodes=NODES, rate=5, **fields):
    """A durable classic queue in use."""
    return lambda t: {
        "queues": (queue(stats=stats(publish=int(rate * t), ack=int(rate * t)), **fields),),
        "nodes": nodes,
    }


def reported(frame):
    """Findings of this rule."""
    return [each for each in look(film(frame, until=20)).findings if each.rule == "unreplicated-on-cluster"]


def test_durable_queues_in_use_with_one_replica_are_one_finding_a_virtual_host():
    """As information: for some queues that is right."""
    (finding,) = reported(single())

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert (["orders"], {"rabbit@one": 1}) == (finding.facts["queue_names"], finding.facts["queues_by_node"])


def test_a_finding_about_many_queues_names_some_of_them():
    """And says how many there are."""
    many = tuple(queue(f"q{number:03}", messages_ready=1) for number in range(200))
    (finding,) = reported(lambda _t: {"queues": many, "nodes": NODES})

    assert (200, 50, 50) == (
        finding.facts["queue_count"], len(finding.facts["queue_names"]), len(finding.involved.queues),
    )  # fmt: skip
    assert text(finding).evidence[0].value.endswith("'q004' and 195 more")


@pytest.mark.parametrize(
    "frame",
    [
        single(nodes=NODES[:2]),
        single(rate=0),
        single(durable=False),
        single(exclusive=True),
        single(type="quorum"),
        single(mirrors=("rabbit@two",)),
    ],
    ids=["two nodes", "not in use", "transient", "exclusive", "quorum", "mirrored"],
)
def test_other_queues_are_not_reported(frame):
    """Few nodes, or nothing to lose."""
    assert [] == reported(frame)
