"""Clients with automatic acknowledgement that nobody serves: the broker sends messages to sockets that nobody reads."""

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.pictures import WALL, channel, consumer, film, look, queue, stats
from tests.unit.diagnosis.pictures import connection as there

RULE = "heartbeat-loss"
HANDSHAKE = 612


def client(number, born, t, *, dies=1e9, rate=4.0, heartbeat=60, every=None, tail=0, **fields):
    """A connection of a consumer, its channel and its consumer at second t; none of them before it was born."""
    age, of = t - born, fields.pop("of", "rates.eur")
    every = every or max(heartbeat, 1) / 2
    beats = int(min(age, dies - born) / every) if heartbeat else 0
    sent = int(rate * age)
    name = f"10.1.0.{number}:4{number} -> 10.1.9.9:5672"
    numbers = {"recv_oct": HANDSHAKE + tail + 8 * beats, "send_oct": 700 + 300 * sent, "connected_at": WALL + born}
    fixed = {"protocol": "AMQP 0-9-1", "peer_host": "10.1.0.5", "peer_port": 40 + number, "heartbeat": heartbeat}
    ack, auto = fields.pop("ack_required", False), fields.pop("auto", sent)
    frozen = fields.pop("statistics_end", 1e9)
    if t > frozen:
        numbers["send_oct"] = 700 + 300 * int(rate * (frozen - born))
    listed = {"client_name": "pricing", **fixed, **numbers, **fields}
    return (
        there(name, **listed),
        channel(f"{name} (1)", stats=stats(deliver_no_ack=auto)),
        consumer(of, tag=f"t{number}", channel_name=f"{name} (1)", connection_name=name, ack_required=ack),
    )


def feed(*clients, closes=None, **of):
    """Return a film of consumers of one queue; each is `(number, born, settings)`, and some close at a second."""

    def frame(t):
        here = [
            client(number, born, t, **settings)
            for number, born, settings in clients
            if t >= born and t < (closes or {}).get(number, 1e9)
        ]
        connections, channels, consumers = zip(*here, strict=True)
        total = sum(each.stats.deliver_no_ack or 0 for each in channels)
        the_queue = queue("rates.eur", consumers=len(here), stats=stats(publish=total, deliver_no_ack=total), **of)
        return {
            "queues": (the_queue,),
            "connections": connections,
            "channels": channels,
            "consumers": consumers,
        }

    return frame


def lost(frame, until, start=0.0):
    """What this rule found in the half minute before a second."""
    return [each for each in look(film(frame, until=until, start=start)).findings if each.rule == RULE]


HALF = feed((1, 0, {"dies": 25}), (2, 90, {}))
"""One client froze before its first heartbeat; its successor works."""


def test_a_consumer_that_sent_no_more_than_a_younger_sibling_gets_messages_in_vain():
    """Its heartbeat is longer than the readings go back, so only the sibling shows it."""
    (finding,) = lost(HALF, until=105, start=75)

    expected = {
        "client": "pricing",
        "peers": ["10.1.0.5:41"],
        "queues": ["rates.eur"],
        "silent_seconds": 105.0,
        "open_connections": ["10.1.0.1:41 -> 10.1.9.9:5672"],
    }
    assert expected == {key: finding.facts[key] for key in expected}
    assert ("critical", "likely") == (finding.severity, finding.certainty)
    assert 4 * finding.facts["sent_seconds"] == finding.facts["sent"]


@pytest.mark.parametrize(
    ("heartbeat", "rate", "born"), [(30, 0.9, 40), (20, 60.0, 45), (120, 2.0, 140), (580, 7.0, 600)]
)
def test_any_heartbeat_and_rate_are_judged_alike(heartbeat, rate, born):
    """The difference in age is what counts."""
    settings = {"heartbeat": heartbeat, "rate": rate}
    frame = feed((1, 0, {"dies": 9, **settings}), (2, born, settings), (3, born + 2, settings))

    (finding,) = lost(frame, until=born + 15, start=born - 20)

    assert ["10.1.0.1:41 -> 10.1.9.9:5672"] == finding.facts["open_connections"]
    assert finding.facts["sent_share"] > 0.3


def test_several_silent_connections_of_one_host_are_one_finding():
    """With what was sent to all of them."""
    frame = feed((1, 0, {"dies": 5}), (2, 3, {"dies": 10}), (3, 100, {}))

    (finding,) = lost(frame, until=115, start=85)

    assert (2, 8 * finding.facts["sent_seconds"]) == (finding.facts["connections"], finding.facts["sent"])


def test_a_short_heartbeat_is_judged_by_the_readings_alone():
    """No sibling is needed, and the one consumer gets everything."""
    (finding,) = lost(feed((1, 0, {"heartbeat": 10, "dies": 20})), until=40)

    assert ("critical", 1.0) == (finding.severity, finding.facts["sent_share"])
    assert "sibling" not in [each.key for each in finding.evidence]


def test_the_loss_is_still_said_after_the_connection_was_closed():
    """As a warning, because it is over."""
    frame = feed((1, 0, {"dies": 25}), (2, 80, {}), closes={1: 105})

    (finding,) = lost(frame, until=110, start=80)

    assert ("warning", 1, []) == (finding.severity, finding.facts["closed"], finding.facts["open_connections"])
    assert finding.facts["sent"] >= 60


def test_the_risk_of_automatic_acknowledgement_is_a_consequence():
    """Nobody needs both findings."""
    verdict = look(film(HALF, until=105, start=75))

    assert "auto-ack-consumer" not in [each.rule for each in verdict.findings]
    assert "auto-ack-consumer" in [each.rule for each in flat(verdict.findings)]


@pytest.mark.parametrize(("heartbeat", "died", "since"), [(60, 300, 300), (30, 111, 105), (90, 200, 180)])
def test_a_client_that_worked_for_long_and_froze_is_found_by_an_exporter_that_follows_it(heartbeat, died, since):
    """It has no sibling, and the readings go back less than its heartbeat."""
    frame = feed((1, 0, {"dies": died, "heartbeat": heartbeat}))
    too_late = since + heartbeat + 5

    (finding,) = lost(frame, until=too_late)

    assert [] == lost(frame, until=too_late - 5)
    assert ("critical", heartbeat + 5, 1.0) == (
        finding.severity,
        finding.facts["silent_seconds"],
        finding.facts["sent_share"],
    )


@pytest.mark.parametrize(
    "frame",
    [
        feed((1, 0, {}), (2, 90, {})),
        feed((1, 0, {"every": 60}), (2, 90, {"every": 60})),
        feed((1, 0, {"heartbeat": 0}), (2, 90, {"heartbeat": 0})),
        feed((1, 50, {"dies": 60}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "tail": 3}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "of": "rates.usd"}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "ack_required": True, "auto": 0}), (2, 90, {"ack_required": True, "auto": 0})),
        feed((1, 0, {"dies": 25, "rate": 0.0}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "statistics_end": 30}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "state": "blocked"}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "node": "rabbit@two"}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "client_name": "audit"}), (2, 90, {})),
        feed((1, 0, {"dies": 25, "connected_at": None}), (2, 90, {})),
        feed((1, 0, {"dies": 25})),
        feed((1, 0, {"every": 60})),
    ],
    ids=[
        "heartbeats every half interval",
        "heartbeats every interval",
        "no heartbeat",
        "not for long enough",
        "another handshake",
        "another queue",
        "manual acknowledgement",
        "nothing is sent",
        "statistics stand still",
        "the broker does not read",
        "another clock",
        "another application",
        "unknown age",
        "no sibling",
        "a healthy one alone",
    ],
)
def test_what_is_no_proof_is_not_reported(frame):
    """Healthy clients, and those that may be healthy."""
    assert [] == lost(frame, until=105, start=75)


@pytest.mark.parametrize("until", range(60, 240, 5))
def test_a_healthy_application_is_never_accused(until):
    """At whatever second its clients of different ages are seen."""
    frame = feed((1, 0, {}), (2, 17, {}), (3, 31, {}), (4, 44, {"every": 60}), (5, 57, {}))

    assert [] == lost(frame, until=until, start=until - 30)
    assert [] == lost(frame, until=until)


def test_messages_of_queues_that_go_with_their_client_are_no_loss():
    """Replies and telemetry: the silent client remains a warning."""
    frame = feed((1, 0, {"dies": 25}), (2, 90, {}), auto_delete=True)

    (finding,) = lost(frame, until=105, start=75)

    assert ("warning", []) == (finding.severity, finding.facts["queues"])
