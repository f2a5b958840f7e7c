import pytest

from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, found, look, only, queue


def using(*, version="4.3.6", definition=None, arguments=None):
    """A policy and a queue with settings of an older version."""
    policies = (Policy(vhost="/", name="lazy", pattern="^orders", apply_to="queues", definition=definition or {}),)
    known = policies if definition else ()
    return lambda _t: {"policies": known, "queues": (queue(arguments=arguments or {}),), "version": version}


def test_one_finding_lists_the_settings_of_a_virtual_host():
    """Policies and queues."""
    frame = using(definition={"queue-mode": "lazy", "max-length": 5}, arguments={"x-queue-version": 1})
    finding = only(look(film(frame, until=10)))

    assert ("removed-feature-used", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert [("queue-mode", "policy", "lazy"), ("x-queue-version", "queue", "orders")] == [
        (each["key"], each["kind"], each["name"]) for each in finding.facts["settings"]
    ]


@pytest.mark.parametrize(
    "frame",
    [
        using(definition={"queue-mode": "lazy"}, version="3.10.8"),
        using(definition={"max-length": 5}),
        using(arguments={"x-queue-version": 2, "x-queue-mode": "default"}),
        using(definition={"queue-master-locator": "min-masters"}, version="4.0.5"),
    ],
    ids=["3.10", "other keys", "the default", "known in 4.0"],
)
def test_other_settings_are_not_reported(frame):
    """Settings that this version knows, and those that ask for the default."""
    assert [] == found(look(film(frame, until=10)))
