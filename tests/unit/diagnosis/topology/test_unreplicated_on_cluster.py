import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import film, look, queue, stats, told

NODES = tuple(Node(name=f"rabbit@{name}", running=True) for name in ("one", "two", "three"))


def single(*, nodes=NODES, rate=5, **fields):
    """A durable classic queue in use."""
    return lambda t: {
        "queues": (queue(stats=stats(publish=int(rate * t), ack=int(rate * t)), **fields),),
        "nodes": nodes,
    }


def lone(frame):
    """What this rule found."""
    return [each for each in look(film(frame, until=20)).findings if each.rule == "unreplicated-on-cluster"]


def test_durable_queues_in_use_with_one_copy_are_one_finding_a_virtual_host():
    """As information: for some that is right."""
    (finding,) = lone(single())

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "1 durable queue in use" in finding.summary
    assert "rabbit@one: 1" in told(finding)


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
def test_the_rest_is_quiet(frame):
    """Few nodes, or nothing to lose."""
    assert [] == lone(frame)
