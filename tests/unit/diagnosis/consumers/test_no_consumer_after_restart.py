import pytest

from ackscope.snapshot import Node
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import NODE, evidence, film, look, queue, stats, text

AT = 60.0
"""Second at which the node is back."""


def restarted(
    t, *, rate=5.0, name="heat.control", cut=None, back=False, before=1, young=None, at=AT, others=3, node=NODE
):
    """A node is restarted; the publisher of a queue comes back, and its consumer does not.

    Args:
        t: second of the film.
        rate: messages per second.
        name: of the queue.
        cut: second at which the consumer ends by itself; None if it ends with the node.
        back: whether the consumer comes back.
        before: consumers of the queue at first.
        young: uptime at the begin of the film; the node is not restarted then.
        at: second of the restart.
        others: other queues, whose consumers come back.
        node: its name.
    """
    up = t >= at
    here = before * ((not up) or back) * (cut is None or t < cut)
    since = t - at if up else t
    ready = 0 if here else int(rate * (since if cut is None or up else t - cut)) + 1
    uptime = young + t if young is not None else since if up else 5000.0 + t
    counters = stats(publish=int(rate * since) + 1) if young is None else stats(publish=int(rate * t) + 1)
    side = tuple(queue(f"other.{i}", consumers=1, stats=counters) for i in range(others))
    own = queue(name, node=node, consumers=here, messages_ready=ready, messages=ready, stats=counters)
    return {"queues": (own, *side), "nodes": (Node(name=node, running=True, uptime_seconds=uptime),)}


def of(frame, until, rule="no-consumer", **options):
    """The findings of a rule."""
    return [each for each in look(film(frame, until=until), **options).findings if each.rule == rule]


@pytest.mark.parametrize(("until", "severity"), [(85, "info"), (100, "warning")])
@pytest.mark.parametrize(
    "fields", [{}, {"rate": 0.5}, {"rate": 300.0, "name": "x1", "others": 0}, {"node": "rabbit@b"}]
)
def test_a_queue_that_lost_its_consumer_by_a_restart_is_a_warning_soon(until, severity, fields):
    """It is no deployment: the broker and its publishers are back."""
    (finding,) = of(lambda t: restarted(t, **fields), until)

    assert severity == finding.severity
    assert (True, fields.get("node", NODE)) == (finding.facts["restarted"]["seen"], finding.facts["restarted"]["node"])
    assert "lost its consumer when node" in text(finding).summary
    assert "did not connect again" in text(finding).steps[0].text
    assert not any("purge" in (step.command or "") for step in text(finding).steps)
    assert fields.get("others", 3) == finding.facts["restarted"]["again"]


@pytest.mark.parametrize(
    "fields",
    [{"cut": 20.0}, {"before": 0}, {"cut": 95.0, "back": True}],
    ids=["it ended long before", "it never had one", "it came back and ended later"],
)
def test_other_queues_without_a_consumer_are_not_put_down_to_the_restart(fields):
    """A deployment takes its time."""
    for finding in of(lambda t: restarted(t, **fields), 150):
        assert "info" == finding.severity or fields == {"cut": 20.0}
        assert not (finding.facts["restarted"] or {}).get("seen")


def test_consumers_that_come_back_are_no_finding():
    """As after most restarts."""
    assert [] == of(lambda t: restarted(t, back=True), 100)


def test_one_look_after_a_start_says_so():
    """The node was started before; nobody saw whether it ran earlier."""

    def frame(t):
        return restarted(t, young=20.0, before=0, at=1000.0)

    (finding,) = of(frame, 10, thresholds=Thresholds.brief())
    (start,) = of(frame, 10, "node-restarted", thresholds=Thresholds.brief())

    assert "was started only" in text(finding).cause
    assert not any("purge" in (step.command or "") for step in text(finding).steps)
    assert ("info", 30.0) == (start.severity, evidence(start, "uptime").value)
    assert "was started 30 s ago" in text(start).summary


@pytest.mark.parametrize("fields", [{"young": 4000.0, "before": 0}, {"young": 20.0, "before": 1}])
def test_a_start_long_ago_or_without_effect_is_not_told(fields):
    """A new broker on which all is well, and one that has run for long."""

    def frame(t):
        return restarted(t, at=1000.0, **fields)

    assert [] == of(frame, 10, "node-restarted", thresholds=Thresholds.brief())
    assert all(each.facts["restarted"] is None for each in of(frame, 10, thresholds=Thresholds.brief()))
