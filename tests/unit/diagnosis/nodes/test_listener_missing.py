from dataclasses import replace

import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import Overview
from tests.unit.diagnosis.nodes.machines import (
    HANGS,
    REFUSED,
    check,
    handshake_probe,
    late,
    node,
    outcome,
    round_trip_probe,
    silent,
)
from tests.unit.diagnosis.pictures import NODE, connection, film, found, full_text, look, only

RULE = "listener-missing"
TURNED_AWAY = "broker:5672: connection refused; is RabbitMQ listening there?"
POLLED = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", node=NODE)


def answering(checks=(), **fields):
    """An API that answers."""
    return film(lambda _: {"overview": POLLED, "health": checks, "nodes": (node(**fields),)}, until=10)


LATER = 1e12
"""Seconds since 1970."""
NONE = check("ready-to-serve-clients", reason="no active listeners for AMQP/AMQPS")
FINE = check("ready-to-serve-clients", ok=True)


def test_the_nodes_own_check_is_enough():
    """Since 4.1, without any probe."""
    finding = only(look(answering(NONE)))

    assert (RULE, "critical", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert "no active listeners for AMQP/AMQPS" in full_text(finding)


def test_a_check_that_fails_for_another_reason_is_not_reported():
    """A node that is starting gives another reason."""
    assert [] == found(look(answering(check("ready-to-serve-clients", reason="the rabbit node is booting"))))


def test_a_probe_that_is_refused_where_it_connected_before_is_enough_on_any_version():
    """Connected clients continue."""
    finding = only(look(answering(FINE), outcomes=(handshake_probe(tcp=TURNED_AWAY), round_trip_probe())))

    assert (RULE, "critical", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert TURNED_AWAY in full_text(finding)


def test_a_probe_that_lost_its_connection_and_is_refused_is_enough_too():
    """Its stream has failed, and it was connected before."""
    lost = outcome("confirm", "classic", state=ProbeState.FAILED, reason=TURNED_AWAY, connects=2, success=False)

    assert [(RULE, "critical", NODE)] == found(look(answering(FINE), outcomes=(lost,)))


def test_of_several_nodes_the_one_that_refuses_is_named():
    """By the address of its handshake; one that does not run is another cause."""
    two = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", node=NODE)
    refused = (replace(handshake_probe(tcp=TURNED_AWAY), node="rabbit@two"),)

    def result(**fields):
        nodes = (node(), node("rabbit@two", **fields))
        return look(film(lambda _: {"overview": two, "health": FINE, "nodes": nodes}, until=10), outcomes=refused)

    assert [(RULE, "critical", "rabbit@two")] == found(result())
    assert RULE not in [finding.rule for finding in result(running=False).findings]


def test_a_probe_that_never_connected_may_have_a_wrong_address():
    """That is no fault of the node."""
    never = replace(handshake_probe(tcp=TURNED_AWAY, worked=False), connects=0)

    assert [] == found(look(answering(FINE), outcomes=(never,)))


def test_a_node_that_is_being_drained_does_so_on_purpose():
    """It is suppressed, with the reason."""
    result = look(answering(NONE, being_drained=True))

    assert RULE not in [finding.rule for finding in result.findings]
    assert ["draining"] == [each.reason for each in result.suppressed if each.rule == RULE]


def test_suspended_listeners_close_the_api_too():
    """The API is refused, and connected clients are served."""
    finding = only(look(film(silent(REFUSED), until=40), outcomes=(round_trip_probe(),)))

    assert (RULE, "critical", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert finding.facts["api_refuses"] is True


def test_a_node_that_does_not_answer_at_all_is_another_cause():
    """The API is refused, and so are the probes: it is down."""
    stopped = outcome("rtt", state=ProbeState.FAILED, reason=TURNED_AWAY, success=False)
    result = look(film(silent(REFUSED), until=40), outcomes=(stopped,))

    assert RULE not in [finding.rule for finding in result.findings]


@pytest.mark.parametrize(("uptime", "reported"), [(10.0, False), (70.0, True)], ids=["starts", "has started"])
def test_a_node_that_starts_opens_its_port_last(uptime, reported):
    """For a node that has just started it is suppressed, with the reason."""
    for outcomes, checks in (((handshake_probe(tcp=TURNED_AWAY),), FINE), ((), NONE)):
        result = look(answering(checks, uptime_seconds=uptime), outcomes=outcomes)

        assert reported == (RULE in [finding.rule for finding in result.findings])
        assert reported != (RULE in [each.rule for each in result.suppressed])


def test_a_port_that_was_open_before_is_reported():
    """A client is served over a connection to it, so its listener is missing again, however recent the start."""
    result = look(answering(NONE, uptime_seconds=10.0), outcomes=(replace(round_trip_probe(), at=LATER),))

    assert [(RULE, "critical", NODE)] == found(result)


@pytest.mark.parametrize(("until", "reported"), [(10, False), (50, True)])
def test_the_uptime_grows_while_the_node_cannot_be_read(until, reported):
    """The check still answers on a connection of its own; the list of nodes hangs, and its last uptime was 30 s."""

    def frame(t):
        nodes = late((node(uptime_seconds=30.0),), min(t, 5), HANGS if t > 5 else None)
        return {"overview": POLLED, "health": NONE, "nodes": nodes}

    assert reported == (RULE in [finding.rule for finding in look(film(frame, until=until)).findings])


@pytest.mark.parametrize(("until", "reported"), [(8, False), (40, True)])
def test_an_api_that_serves_old_connections_and_refuses_new_ones(until, reported):
    """Each family has a connection of its own: the open ones are served, so the node runs."""

    def frame(t):
        health = late(FINE, min(t, 5), REFUSED if t > 5 else None)
        return {"overview": POLLED, "health": health, "nodes": (node(),)}

    result = look(film(frame, until=until))

    assert reported == (RULE in [finding.rule for finding in result.findings])


def test_a_node_that_stops_was_last_seen_running():
    """Its probes are refused at once; the next poll of the API is some seconds later, and fails then."""
    own = connection("10.0.0.9:1 -> b", client_name="ackscope-probe-confirm", node=NODE)
    lost = outcome("confirm", "classic", state=ProbeState.FAILED, reason=TURNED_AWAY, connects=2, success=False)
    parts = {"overview": POLLED, "health": FINE, "nodes": (node(),)}

    def result(**more):
        return look(film(lambda _: {**parts, **more}, until=10), outcomes=(lost,))

    assert RULE not in [finding.rule for finding in result(connections=(own,)).findings]
    assert RULE in [finding.rule for finding in result(connections=()).findings]
    refused = {"overview": late(POLLED, 5, REFUSED), "nodes": late((node(),), 5, REFUSED)}
    assert RULE not in [finding.rule for finding in result(**refused).findings]


def test_an_api_that_has_just_begun_to_refuse_may_be_that_of_a_node_that_stops():
    """A probe that is reported as served has not noticed yet."""
    result = look(film(silent(REFUSED, since=20), until=25), outcomes=(round_trip_probe(),))

    assert RULE not in [finding.rule for finding in result.findings]


def test_a_node_that_has_just_started_reports_no_uptime():
    """Seen on 4.3.6: its first reading after a restart has none."""

    def frame(t):
        there = node(uptime_seconds=30.0 + t if t < 10 else None)
        return {"overview": POLLED, "health": FINE, "nodes": (there,)}

    result = look(film(frame, until=10), outcomes=(handshake_probe(tcp=TURNED_AWAY), round_trip_probe()))

    assert RULE not in [finding.rule for finding in result.findings]
    assert [("starting", None)] == [
        (each.reason, each.facts["uptime_seconds"]) for each in result.suppressed if each.rule == RULE
    ]


def test_a_handshake_before_a_restart_does_not_prove_an_open_port():
    """Between two handshakes the probe reports the last one, and the node was killed and started since."""
    earlier = replace(handshake_probe(), at=LATER)
    result = look(answering(NONE, uptime_seconds=10.0), outcomes=(earlier,))

    assert RULE not in [finding.rule for finding in result.findings]
    assert ["starting"] == [each.reason for each in result.suppressed if each.rule == RULE]


def test_a_handshake_before_a_stop_does_not_prove_that_the_node_runs():
    """The API of a killed node is refused; its probes failed, and the next handshake is still to come."""
    lost = outcome("rtt", state=ProbeState.FAILED, reason=TURNED_AWAY, success=False)
    result = look(film(silent(REFUSED), until=40), outcomes=(lost, handshake_probe()))

    assert RULE not in [finding.rule for finding in result.findings]


@pytest.mark.parametrize(("read_again", "reported"), [(False, False), (True, True)])
def test_a_node_that_was_read_before_its_check_failed_may_have_restarted(read_again, reported):
    """Its last uptime is that before the restart, although its other parts are read again."""

    def frame(t):
        at = t if t < 10 or (read_again and t >= 20) else 5.0
        return {"overview": POLLED, "health": FINE if t < 10 else NONE, "nodes": late((node(),), at, None)}

    result = look(film(frame, until=25))

    assert reported == (RULE in [finding.rule for finding in result.findings])
    assert reported != (RULE in [each.rule for each in result.inconclusive])


@pytest.mark.parametrize("probe", ["prefetch", "redelivery", "outcomes"])
def test_a_probe_between_two_rounds_does_not_prove_that_the_node_runs(probe):
    """Seen on 4.3.6: it has not noticed that the node was killed."""
    lost = outcome("rtt", state=ProbeState.FAILED, reason=TURNED_AWAY, success=False)
    result = look(film(silent(REFUSED), until=40), outcomes=(lost, outcome(probe, "quorum")))

    assert RULE not in [finding.rule for finding in result.findings]


@pytest.mark.parametrize("back", [("overview",), ("overview", "nodes"), ()])
@pytest.mark.parametrize("away", [9.0, 25.0])
def test_a_node_that_was_restarted_just_now_is_not_one_that_refuses(back, away):
    """Some parts are read again, and the probes are served again; the others were refused before that."""

    def frame(t):
        again = dict.fromkeys(back, t) if t >= 20 + away else {}
        now = node(uptime_seconds=2.0 if again else 1000.0 + t)
        parts = {"overview": POLLED, "nodes": (now,), "health": FINE}
        return {
            name: late(value, min(t, again.get(name, 20)), REFUSED if t > 20 and name not in again else None)
            for name, value in parts.items()
        }

    served = replace(round_trip_probe(), connects=2, at=LATER)
    result = look(film(frame, until=round(20 + away)), outcomes=(served, handshake_probe(tcp=TURNED_AWAY)))

    assert RULE not in [finding.rule for finding in result.findings]


@pytest.mark.parametrize(("until", "reported"), [(60, False), (90, True)])
def test_probes_that_have_reconnected_prove_it_after_a_minute(until, reported):
    """A restart is over by then, or the API is read again."""
    result = look(film(silent(REFUSED), until=until), outcomes=(replace(round_trip_probe(), connects=5),))

    assert reported == (RULE in [finding.rule for finding in result.findings])
