import pytest

from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, look, queue


def policy(name, pattern="^orders", priority=0, **fields):
    """A policy for queues."""
    return Policy(
        vhost="/",
        name=name,
        **{"pattern": pattern, "priority": priority, "apply_to": "queues", "definition": {"a": name}} | fields,
    )


def judged(*policies, queues=None):
    """Findings of this rule."""
    parts = {"policies": policies, "queues": (queue(),) if queues is None else queues}
    return [each for each in look(film(lambda _t: parts, until=10)).findings if each.rule == "policy-not-applied"]


@pytest.mark.parametrize(
    ("policies", "name", "reason"),
    [
        ((policy("typo", "^oders"),), "typo", "matches_no_queue"),
        ((policy("low"), policy("high", priority=5)), "low", "overridden"),
        ((policy("streams", apply_to="streams"),), "streams", "matches_no_queue"),
    ],
    ids=["a typing error", "overridden", "another type"],
)
def test_policies_without_effect_are_reported(policies, name, reason):
    """One finding for the virtual host."""
    (finding,) = judged(*policies)

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert [(name, reason)] == [(each["name"], each["reason"]) for each in finding.facts["without_effect"]]
    assert [] == finding.facts["conflicts"]


def test_policies_of_equal_priority_are_a_conflict():
    """It is undefined which is in force."""
    (finding,) = judged(policy("one"), policy("two"))

    assert [{"policies": ["one", "two"], "queue_count": 1, "queues": ["orders"]}] == finding.facts["conflicts"]
    assert [] == finding.facts["without_effect"]


@pytest.mark.parametrize(
    ("policies", "queues"),
    [
        ((policy("one"),), None),
        ((policy("default", ".*"), policy("high", priority=5)), (queue(), queue("other"))),
        ((policy("one"), policy("two", definition={"a": "one"})), None),
        ((policy("exchanges", apply_to="exchanges", pattern="^nothing"),), None),
        ((policy("all", apply_to="all", pattern="^nothing"),), None),
        ((policy("operator", "^nothing", operator=True),), None),
        ((policy("odd", "^(?<x>"),), ()),
        ((policy("one", "^oders"),), ()),
    ],
    ids=[
        "matches",
        "default and exception",
        "a tie of equals",
        "exchanges",
        "all",
        "operator",
        "odd pattern",
        "no queue yet",
    ],
)
def test_other_policies_are_not_reported(policies, queues):
    """A default with exceptions above it is as it should be."""
    assert [] == judged(*policies, queues=queues)
