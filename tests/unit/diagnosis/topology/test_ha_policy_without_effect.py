import pytest

from ackscope.snapshot import Node
from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue

NODES = tuple(Node(name=name, running=True) for name in (NODE, "rabbit@two"))


def mirrored(*, definition=None, version="4.3.6", nodes=NODES, pattern="^orders", **fields):
    """A policy from an older version, and a queue that it matches."""
    policy = Policy(
        vhost="/", name="ha", pattern=pattern, apply_to="queues", definition=definition or {"ha-mode": "all"}
    )
    return lambda _t: {"policies": (policy,), "queues": (queue(**fields),), "nodes": nodes, "_version": version}


def seen(frame):
    """The result for it."""
    parts = frame(0)
    version = parts.pop("_version")
    return look(film(lambda _t: {**parts, "version": version}, until=10))


def test_queues_without_the_mirrors_that_a_policy_asks_for_are_a_warning():
    """On a cluster."""
    finding = only(seen(mirrored()))

    assert ("ha-policy-without-effect", "warning", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert (["ha"], ["ha-mode"], ["orders"]) == tuple(finding.facts[key] for key in ("policies", "keys", "queue_names"))


@pytest.mark.parametrize(
    "frame",
    [mirrored(nodes=NODES[:1]), mirrored(pattern="^nothing"), mirrored(type="quorum")],
    ids=["one node", "no queue", "a quorum queue"],
)
def test_it_is_information_if_no_queue_lacks_a_replica(frame):
    """The policy promises what it does not do."""
    assert ("ha-policy-without-effect", "info", "/") in found(seen(frame))


@pytest.mark.parametrize(
    "frame", [mirrored(version="3.10.8"), mirrored(definition={"max-length": 5})], ids=["3.10", "other keys"]
)
def test_other_policies_are_not_reported(frame):
    """Before 4.0, mirrors exist."""
    assert "ha-policy-without-effect" not in {rule for rule, _, _ in found(seen(frame))}
