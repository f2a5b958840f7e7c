import pytest

from tests.unit.diagnosis.pictures import channel, film, look, only, stats, text
from tests.unit.diagnosis.pictures import connection as there

RULE = "heartbeat-loss"


def silent(t, *, since=20.0, closed=1e9, heartbeat=10, of=None, **fields):
    """A client that sends a heartbeat every 5 s and then stops; and one that continues."""
    defaults = {"heartbeat": heartbeat, "protocol": "AMQP 0-9-1", "peer_host": "10.0.0.7", **fields}
    alive = there("10.0.0.9:1 -> 10.0.0.1:5672", **{**defaults, "client_name": "shop", "recv_oct": 8 * int(t / 5)})
    frozen = there(**{**defaults, "recv_oct": 8 * int(min(t, since) / 5), **fields})
    works = channel(f"{frozen.name} (1)", connection_name=frozen.name, **(of or {"consumer_count": 1}))
    return {"connections": (alive,) if t >= closed else (alive, frozen), "channels": () if t >= closed else (works,)}


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


@pytest.mark.parametrize(
    ("of", "severity"),
    [
        ({"consumer_count": 0, "messages_unacked": 0}, "info"),
        ({"consumer_count": 0, "messages_unacked": 3}, "warning"),
        ({"consumer_count": 0, "messages_unacked": 0, "stats": stats(publish=1)}, "warning"),
    ],
    ids=["idle", "holds messages", "publishes"],
)
def test_a_silent_client_that_does_nothing_is_information(of, severity):
    """A tool that declared its queues and stays connected: no message waits for it."""
    (finding,) = lost(lambda t: silent(t, of=of), until=35)

    assert severity == finding.severity.value
    assert ("no message waits for it" in text(finding).summary) == (severity == "info")


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


def test_a_client_that_ends_its_connection_itself_was_not_silent():
    """It sent until then."""
    assert [] == lost(lambda t: silent(t, since=1e9, closed=30), until=40)


def test_heartbeats_that_are_too_long_to_be_judged_are_inconclusive():
    """Permanently, because nothing is wrong with them."""
    gaps = [gap for gap in look(film(lambda t: silent(t, heartbeat=60), until=35)).inconclusive if gap.rule == RULE]

    assert [("heartbeat_too_long", True)] == [(gap.reason, gap.permanent) for gap in gaps]
