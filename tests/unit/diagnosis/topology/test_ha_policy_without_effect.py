import pytest

from ackscope.snapshot import Node
from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue, told

NODES = tuple(Node(name=name, running=True) for name in (NODE, "rabbit@two"))


def mirrored(*, definition=None, version="4.3.6", nodes=NODES, pattern="^orders", **fields):
    """A policy from older times, and a queue that it covers."""
    policy = Policy(
        vhost="/", name="ha", pattern=pattern, apply_to="queues", definition=definition or {"ha-mode": "all"}
    )
    return lambda _t: {"policies": (policy,), "queues": (queue(**fields),), "nodes": nodes, "_version": version}


def seen(frame):
    """The verdict on it."""
    parts = frame(0)
    version = parts.pop("_version")
    return look(film(lambda _t: {**parts, "version": version}, until=10))


def test_queues_without_the_mirrors_that_they_should_have_are_a_warning():
    """On a cluster."""
    finding = only(seen(mirrored()))

    assert ("ha-policy-without-effect", "warning", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert "'orders'" in told(finding)
    assert "list_policies_with_classic_queue_mirroring" in told(finding)


@pytest.mark.parametrize(
    "frame",
    [mirrored(nodes=NODES[:1]), mirrored(pattern="^nothing"), mirrored(type="quorum")],
    ids=["one node", "no queue", "a quorum queue"],
)
def test_it_is_information_where_nothing_lacks_a_copy(frame):
    """The policy still says what is not so."""
    assert ("ha-policy-without-effect", "info", "/") in found(seen(frame))


@pytest.mark.parametrize(
    "frame", [mirrored(version="3.10.8"), mirrored(definition={"max-length": 5})], ids=["3.10", "other keys"]
)
def test_the_rest_is_quiet(frame):
    """Before 4.0 mirrors are real."""
    assert "ha-policy-without-effect" not in {rule for rule, _, _ in found(seen(frame))}
