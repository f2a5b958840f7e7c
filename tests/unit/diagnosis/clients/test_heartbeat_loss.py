from dataclasses import replace

import pytest

from tests.unit.diagnosis.pictures import channel, film, look, only, stats, text
from tests.unit.diagnosis.pictures import connection as there

RULE = "heartbeat-loss"


def silent(t, *, since=20.0, closed=1e9, heartbeat=10, **fields):
    """A client that sends a heartbeat every 5 s and then stops; and one that continues."""
    defaults = {"heartbeat": heartbeat, "protocol": "AMQP 0-9-1", "peer_host": "10.0.0.7", **fields}
    alive = there("10.0.0.9:1 -> 10.0.0.1:5672", **{**defaults, "client_name": "shop", "recv_oct": 8 * int(t / 5)})
    frozen = there(**{**defaults, "recv_oct": 8 * int(min(t, since) / 5), **fields})
    return {"connections": (alive,) if t >= closed else (alive, frozen)}


def lost(frame, until):
    """What this rule found."""
    return [each for each in look(film(frame, until=until)).findings if each.rule == RULE]


def test_a_client_that_stopped_sending_heartbeats_is_reported():
    """Before the broker closes its connection."""
    finding = only(look(film(silent, until=35)))

    assert ("heartbeat-loss", "warning", "billing") == (finding.rule, finding.severity, finding.subject.name)
    expected = {"client": "billing", "host": "10.0.0.7", "silent_seconds": 15.0, "heartbeat_seconds": 10, "closed": 0}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ["silence", "closed", "unacked"] == [item.key for item in finding.evidence]


def test_it_is_reported_for_a_while_after_the_broker_closed_the_connection():
    """As long as its readings are in the window."""
    (finding,) = lost(lambda t: silent(t, closed=40), until=45)

    assert (1, 1) == (finding.facts["closed"], finding.facts["connections"])
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
    ids=["not long enough", "no heartbeat", "a long interval", "another protocol", "unknown", "our own"],
)
def test_other_clients_are_not_reported(frame):
    """Silence within the heartbeat interval is normal."""
    assert [] == lost(frame, until=35)


def waiting(t, *, counters=None, listed=True, number=1, **fields):
    """Silent connections of one script in several virtual hosts, each with a channel."""
    made = silent(t)
    (alive, frozen) = made["connections"]
    names = [f"10.0.0.7:{place} -> 10.0.0.1:5672" for place in range(number)]
    own = tuple(replace(frozen, name=name, vhost=f"v{place}") for place, name in enumerate(names))
    opened = (channel(f"{name} (1)", consumer_count=0, stats=stats(**(counters or {})), **fields) for name in names)
    return {"connections": (alive, *own), "channels": tuple(opened) if listed else ()}


def test_connections_over_which_nothing_was_moved_are_one_information():
    """A script declared queues and waits; several connections of it are one finding."""
    (finding,) = lost(lambda t: waiting(t, number=4), until=35)

    assert ("info", 4, None) == (finding.severity, finding.facts["connections"], finding.subject.vhost)
    assert "Nothing breaks" in text(finding).summary


def test_an_idle_connection_of_a_client_that_is_missed_is_part_of_its_finding():
    """The client is one process."""

    def frame(t):
        idle, busy = waiting(t, number=2), waiting(t, counters={"publish": 7})
        return {
            "connections": tuple(replace(each, vhost="v0") for each in idle["connections"]),
            "channels": (*busy["channels"], idle["channels"][1]),
        }

    (finding,) = lost(frame, until=35)

    assert ("warning", 2) == (finding.severity, finding.facts["connections"])


@pytest.mark.parametrize(
    "fields",
    [{"counters": {"publish": 1}}, {"counters": {"deliver_get": 1}}, {"messages_unacked": 2}, {"listed": False}],
    ids=["published", "got", "holds", "unknown channels"],
)
def test_a_client_that_moved_messages_is_missed(fields):
    """Or nobody knows whether it did."""
    (finding,) = lost(lambda t: waiting(t, **fields), until=35)

    assert "warning" == finding.severity


def test_a_client_that_ends_its_connection_itself_was_not_silent():
    """It sent until then."""
    assert [] == lost(lambda t: silent(t, since=1e9, closed=30), until=40)


def test_heartbeats_that_are_too_long_to_be_judged_are_inconclusive():
    """Permanently, because nothing is wrong with them."""
    gaps = [gap for gap in look(film(lambda t: silent(t, heartbeat=60), until=35)).inconclusive if gap.rule == RULE]

    assert [("heartbeat_too_long", True)] == [(gap.reason, gap.permanent) for gap in gaps]
