import pytest

from ackscope.snapshot import Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import HANGS, REFUSED, handshake_probe, late, node, round_trip_probe, silent
from tests.unit.diagnosis.pictures import evidence, film, found, look, moment, only, queue

RULE = "management-overload"


def slow(took, family="overview", **parts):
    """Readings of a family that take so long."""

    def frame(t):
        value = {"channels": (), "queues": parts.get("queues", ())}.get(family, ())
        return {**parts, family: Part(value=value, at=moment(t), seconds=took(t) if callable(took) else took)}

    return frame


def hanging(*families, since=20.0, nodes=None):
    """Families that get no answer any more, while health checks do."""

    def frame(t):
        at, why = (t, None) if t <= since else (since, HANGS)
        values = {"nodes": nodes or (node(),)}
        return {"nodes": nodes or (node(),), **{name: late(values.get(name, ()), at, why) for name in families}}

    return frame


def test_answers_that_take_long_are_a_warning_at_the_third():
    """The second is information."""
    assert [(RULE, "warning", "shop")] == found(look(film(slow(6.0, "channels"), until=30)))
    assert [(RULE, "info", "shop")] == found(look(film(slow(6.0, "channels"), until=5)))


def test_one_slow_answer_is_not_reported():
    """A hiccup."""
    assert [] == found(look(film(slow(lambda t: 9.0 if t == 30 else 0.1, "channels"), until=30)))


def test_a_list_of_many_pages_takes_long_on_a_healthy_broker():
    """A list of more than 500 queues is read page by page."""
    many = tuple(queue(f"q{number}") for number in range(501))

    assert [] == found(look(film(slow(9.0, "queues", queues=many), until=10)))


def test_requests_without_an_answer_while_health_checks_get_one():
    """The API hangs and the node does not."""
    finding = only(look(film(hanging("nodes", "channels"), until=40), outcomes=(round_trip_probe(),)))

    assert (RULE, "warning") == (finding.rule, finding.severity.value)
    assert (["channels", "nodes"], 1) == (finding.facts["failed"], finding.facts["served_streams"])
    assert 0 == evidence(finding, "health_checks").value


def test_with_other_nodes_it_may_be_a_hung_peer():
    """A hung peer delays requests that involve all nodes; that has a rule of its own."""
    result = look(film(hanging("nodes", "channels", nodes=(node(), node("b"))), until=40))

    assert RULE not in [finding.rule for finding in result.findings]


def test_an_api_without_any_answer_is_overloaded_if_clients_are_served():
    """If none is served it is a hung node, and without probes it may be one."""
    window = film(silent(), until=40)

    assert [(RULE, "warning", "shop")] == found(look(window, outcomes=(round_trip_probe(), handshake_probe())))
    assert [("hung-node", "info", "rabbit@one")] == found(look(window))
    assert RULE not in [
        f.rule for f in look(window, outcomes=(round_trip_probe(reason="no answer within 10 s"),)).findings
    ]


def test_an_api_that_is_refused_is_another_cause():
    """Nothing listens there."""
    result = look(film(silent(REFUSED), until=40), outcomes=())

    assert RULE not in [finding.rule for finding in result.findings]


@pytest.mark.parametrize("took", [4.0, None])
def test_a_fast_or_unknown_answer_is_no_fault(took):
    """Absent is not long."""
    assert [] == found(look(film(slow(took, "channels"), until=30), thresholds=Thresholds()))
