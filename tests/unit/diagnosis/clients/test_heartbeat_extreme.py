import pytest

from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only


def beating(*heartbeats, **fields):
    """A connection for each of these heartbeats."""
    defaults = {"protocol": "AMQP 0-9-1", "peer_host": "10.0.0.7", "connected_at": WALL - 60, **fields}
    mine = tuple(
        connection(f"10.0.0.7:{50000 + place} -> 10.0.0.1:5672", heartbeat=heartbeat, **defaults)
        for place, heartbeat in enumerate(heartbeats)
    )
    return lambda _t: {"connections": mine}


def test_one_finding_lists_them_all():
    """Off, too long, too short."""
    finding = only(look(film(beating(0, 600, 2, 30, 60), until=10)))

    assert ("heartbeat-extreme", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    expected = {"connections": 3, "off": 1, "too_long": 1, "too_short": 1}
    assert expected == {key: finding.facts[key] for key in expected}
    assert {"client": "billing", "host": "10.0.0.7", "heartbeat_seconds": 0} in finding.facts["clients"]


@pytest.mark.parametrize(
    "frame",
    [
        beating(60, 30, 10, 5, 300),
        beating(None),
        beating(0, protocol="MQTT 3.1.1"),
        beating(0, protocol=None),
        beating(0, connected_at=WALL + 8),
    ],
    ids=["usual", "unknown", "another protocol", "unknown protocol", "just opened"],
)
def test_other_connections_are_not_reported(frame):
    """Absent is not off."""
    assert [] == found(look(film(frame, until=10)))
