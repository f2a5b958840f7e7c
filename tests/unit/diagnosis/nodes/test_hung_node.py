from dataclasses import replace

import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import MetricsReading, Node, Part
from tests.unit.diagnosis.nodes.machines import REFUSED, handshake_probe, node, outcome, round_trip_probe, silent
from tests.unit.diagnosis.pictures import NODE, film, look, moment, only, text

RULE = "hung-node"
METRICS_ALONE = MetricsReading(nodes=(NODE,), families=("queues", "overview", "nodes", "health"), alone=True)
MUTE = "broker:5672: no answer in time; check host, port and firewall"
LOST = "no answer within 10 s"


def rules(result):
    """Names of what was found."""
    return [finding.rule for finding in result.findings]


def test_connections_that_are_accepted_and_not_answered_are_a_hung_node():
    """Neither over HTTP nor over AMQP; TCP connects."""
    finding = only(
        look(film(silent(), until=40), outcomes=(handshake_probe(opening=MUTE), round_trip_probe(reason=LOST)))
    )

    assert (RULE, "critical", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert finding.facts["accepts_connections"] is True
    assert ["overview", "nodes", "health"] == [
        each.facts["family"] for each in finding.evidence if each.key == "api_error"
    ]
    assert "2027-01-15T08:00:20Z" == finding.since


def test_a_passive_declare_without_an_answer_is_enough():
    """The handshake probe connects only every 30 s."""
    finding = only(look(film(silent(), until=40), outcomes=(handshake_probe(), round_trip_probe(reason=LOST))))

    assert RULE == finding.rule
    assert finding.facts["accepts_connections"] is False


def test_after_minutes_it_is_still_reported():
    """Everything that was read is too old for other rules then."""
    result = look(film(silent(), until=300), outcomes=(handshake_probe(opening=MUTE),))

    assert RULE in rules(result)


def test_a_probe_that_is_served_proves_that_the_node_works():
    """Then it is the management API that hangs."""
    result = look(film(silent(), until=40), outcomes=(handshake_probe(), round_trip_probe()))

    assert ["management-overload"] == rules(result)


def test_health_checks_that_answer_are_another_cause():
    """A hung peer, or an overloaded API."""
    frame = silent()
    result = look(
        film(lambda t: {**frame(t), "health": ()}, until=40),
        outcomes=(handshake_probe(opening=MUTE), round_trip_probe(reason=LOST)),
    )

    assert RULE not in rules(result)


def test_health_checks_that_are_merely_old_do_not_hide_it():
    """The node hung between two checks, and the last checks have not failed yet."""
    frame = silent()

    def midst(t):
        parts = frame(t)
        return {**parts, "health": replace(parts["health"], error=None)}

    outcomes = (handshake_probe(opening=MUTE), round_trip_probe(reason=LOST))

    assert [RULE] == rules(look(film(midst, until=40), outcomes=outcomes))
    assert RULE not in rules(look(film(midst, until=30), outcomes=outcomes))


def test_refused_connections_are_another_cause():
    """The host replies that nothing listens: the node is down."""
    stopped = outcome("rtt", state=ProbeState.FAILED, reason="connection refused", success=False)

    assert RULE not in rules(look(film(silent(REFUSED), until=40), outcomes=(stopped,)))


def test_a_host_that_cannot_be_reached_does_not_accept_connections():
    """Not even TCP connects: that may be the network."""
    away = handshake_probe(tcp="broker:5672: no answer in time; check host, port and firewall")
    result = look(film(silent(), until=40), outcomes=(away,))

    assert RULE not in rules(result)


@pytest.mark.parametrize(
    ("until", "severity"), [(25, None), (40, "info"), (75, "info"), (90, "warning"), (300, "warning")]
)
def test_without_probes_it_may_be_the_management_api_alone(until, severity):
    """Information, and a warning after a minute; the rules that need its data are inconclusive."""
    result = look(film(silent(), until=until))
    found = [it for it in result.findings if it.rule == RULE]

    assert result.inconclusive
    assert [severity] * len(found) == [it.severity.value for it in found]
    assert len(found) == (0 if severity is None else 1)
    for it in found:
        assert "not known whether clients are served" in text(it).summary
        assert "management API" in text(it).summary
        assert "no message gets in or out" not in text(it).summary


def test_a_prometheus_endpoint_that_is_the_only_source_and_hangs():
    """The same with its words; how each family failed is the same request."""
    hangs = silent()
    window = film(lambda t: {**hangs(t), "prometheus": Part(value=METRICS_ALONE, at=moment(t))}, until=90)
    finding = only(look(window))

    assert (RULE, "warning", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert "Prometheus endpoint" in text(finding).summary
    assert ["metrics"] == [it.facts["family"] for it in finding.evidence]


@pytest.mark.parametrize("ago", [0, 9, 29])
def test_an_api_that_answers_now_and_then_is_no_warning(ago):
    """One whole answer in each half minute, the latest so many seconds ago."""
    window = film(lambda t: silent(since=t - (t + 30 - ago) % 30)(t), until=300 + ago)

    assert {it.severity.value for it in look(window).findings if it.rule == RULE} <= {"info"}


def test_of_several_nodes_the_polled_one_is_named():
    """By the overview; probes of the others do not count."""
    nodes = (node(), node("rabbit@two"))
    other = outcome("rtt", state=ProbeState.FAILED, reason=LOST, node="rabbit@two", success=False)
    window = film(silent(nodes=nodes), until=40)

    assert NODE == only(look(window, outcomes=(handshake_probe(opening=MUTE),))).subject.name
    assert RULE not in rules(look(window, outcomes=(other,)))


def test_a_node_that_is_not_known_yet_is_named_as_the_cluster():
    """Its name was never read."""
    frame = silent(nodes=(Node(name="a"), Node(name="b")))

    def nameless(t):
        parts = frame(t)
        return {**parts, "overview": type(parts["overview"])(error=parts["nodes"].error)}

    finding = only(look(film(nameless, until=40), outcomes=(handshake_probe(opening=MUTE),)))

    assert ("cluster", "shop") == (finding.subject.kind, finding.subject.name)
