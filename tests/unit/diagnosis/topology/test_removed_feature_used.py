import pytest

from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, found, look, only, queue, told


def using(*, version="4.3.6", definition=None, arguments=None):
    """A policy and a queue with settings of older times."""
    policies = (Policy(vhost="/", name="lazy", pattern="^orders", apply_to="queues", definition=definition or {}),)
    known = policies if definition else ()
    return lambda _t: {"policies": known, "queues": (queue(arguments=arguments or {}),), "version": version}


def test_one_finding_lists_what_a_virtual_host_still_says():
    """Policies and queues."""
    frame = using(definition={"queue-mode": "lazy", "max-length": 5}, arguments={"x-queue-version": 1})
    finding = only(look(film(frame, until=10)))

    assert ("removed-feature-used", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert "2 settings" in finding.summary
    assert "queue-mode in policy 'lazy'" in told(finding)
    assert "x-queue-version of queue 'orders'" in told(finding)


@pytest.mark.parametrize(
    "frame",
    [
        using(definition={"queue-mode": "lazy"}, version="3.10.8"),
        using(definition={"max-length": 5}),
        using(arguments={"x-queue-version": 2, "x-queue-mode": "default"}),
        using(definition={"queue-master-locator": "min-masters"}, version="4.0.5"),
    ],
    ids=["3.10", "other keys", "what is there anyway", "still known in 4.0"],
)
def test_the_rest_is_quiet(frame):
    """What this version knows, or what asks for what is there anyway."""
    assert [] == found(look(film(frame, until=10)))
