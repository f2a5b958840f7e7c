import pytest

from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, look, queue, told


def policy(name, pattern="^orders", priority=0, **fields):
    """A policy for queues."""
    return Policy(
        vhost="/",
        name=name,
        **{"pattern": pattern, "priority": priority, "apply_to": "queues", "definition": {"a": name}} | fields,
    )


def judged(*policies, queues=None):
    """What this rule found."""
    parts = {"policies": policies, "queues": (queue(),) if queues is None else queues}
    return [each for each in look(film(lambda _t: parts, until=10)).findings if each.rule == "policy-not-applied"]


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ((policy("typo", "^oders"),), "'typo': pattern '^oders' fits no queue"),
        ((policy("low"), policy("high", priority=5)), "'low': others of higher priority cover all its queues"),
        ((policy("one"), policy("two")), "'one' and 'two' have the same priority and fit orders"),
        ((policy("streams", apply_to="streams"),), "'streams': pattern '^orders' fits no queue"),
    ],
    ids=["a slip", "beaten", "a tie", "another type"],
)
def test_policies_that_do_nothing_or_are_in_each_others_way_are_told(policies, words):
    """One finding for the virtual host."""
    (finding,) = judged(*policies)

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert words in told(finding)


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
        "fits",
        "default and exception",
        "a tie of equals",
        "exchanges",
        "all",
        "operator",
        "odd pattern",
        "no queue yet",
    ],
)
def test_the_rest_is_quiet(policies, queues):
    """A default with exceptions above it is how it should be."""
    assert [] == judged(*policies, queues=queues)
