import pytest

from tests.unit.diagnosis.pictures import connection as there
from tests.unit.diagnosis.pictures import film, look, only, told

RULE = "heartbeat-loss"


def silent(t, *, since=20.0, closed=1e9, heartbeat=10, **fields):
    """A client that sends a heartbeat every 5 s, until it does not; and one that goes on."""
    said = {"heartbeat": heartbeat, "protocol": "AMQP 0-9-1", "peer_host": "10.0.0.7", **fields}
    alive = there("10.0.0.9:1 -> 10.0.0.1:5672", **{**said, "client_name": "shop", "recv_oct": 8 * int(t / 5)})
    frozen = there(**{**said, "recv_oct": 8 * int(min(t, since) / 5), **fields})
    return {"connections": (alive,) if t >= closed else (alive, frozen)}


def lost(frame, until):
    """What this rule found."""
    return [each for each in look(film(frame, until=until)).findings if each.rule == RULE]


def test_a_client_that_left_out_its_heartbeat_is_told():
    """Before the broker gives it up."""
    finding = only(look(film(silent, until=35)))

    assert ("heartbeat-loss", "warning", "billing") == (finding.rule, finding.severity, finding.subject.name)
    assert "nothing came from 'billing' at 10.0.0.7 for 15 s" in finding.summary
    assert "is given up soon" in finding.summary
    assert "missed heartbeats from client" in told(finding)


def test_it_is_told_for_a_while_after_the_broker_gave_it_up():
    """As long as clients are held."""
    (finding,) = lost(lambda t: silent(t, closed=40), until=45)

    assert "was given up" in finding.summary
    assert [] == lost(lambda t: silent(t, closed=40), until=80)


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: silent(t, since=28),
        lambda t: silent(t, heartbeat=0),
        lambda t: silent(t, heartbeat=60),
        lambda t: silent(t, protocol="MQTT 3.1.1"),
        lambda t: silent(t, recv_oct=None),
        lambda t: silent(t, client_name="ackscope-probe"),
    ],
    ids=["not long enough", "no heartbeat", "one that is far apart", "another protocol", "not told", "our own"],
)
def test_the_rest_is_quiet(frame):
    """Silence within the promise is none."""
    assert [] == lost(frame, until=35)


def test_a_client_that_ends_its_connection_itself_was_not_silent():
    """It spoke until then."""
    assert [] == lost(lambda t: silent(t, since=1e9, closed=30), until=40)


def test_heartbeats_that_are_too_far_apart_to_be_judged_are_told_once():
    """For good: nothing is wrong with them."""
    gaps = [gap for gap in look(film(lambda t: silent(t, heartbeat=60), until=35)).inconclusive if gap.rule == RULE]

    assert [True] == [gap.permanent for gap in gaps]
