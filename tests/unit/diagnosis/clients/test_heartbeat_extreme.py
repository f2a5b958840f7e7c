import pytest

from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only, told


def beating(*heartbeats, **fields):
    """A connection for each of these heartbeats."""
    there = {"protocol": "AMQP 0-9-1", "peer_host": "10.0.0.7", "connected_at": WALL - 60, **fields}
    mine = tuple(
        connection(f"10.0.0.7:{50000 + place} -> 10.0.0.1:5672", heartbeat=heartbeat, **there)
        for place, heartbeat in enumerate(heartbeats)
    )
    return lambda _t: {"connections": mine}


def test_one_finding_lists_them_all():
    """Off, too far apart, too close."""
    finding = only(look(film(beating(0, 600, 2, 30, 60), until=10)))

    assert ("heartbeat-extreme", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    assert "3 connections" in finding.summary
    assert "1 without any, 1 too far apart, 1 too close" in finding.summary
    assert "'billing' at 10.0.0.7: off" in told(finding)


@pytest.mark.parametrize(
    "frame",
    [
        beating(60, 30, 10, 5, 300),
        beating(None),
        beating(0, protocol="MQTT 3.1.1"),
        beating(0, protocol=None),
        beating(0, connected_at=WALL + 8),
    ],
    ids=["usual", "not told", "another protocol", "protocol not told", "just come"],
)
def test_the_rest_is_quiet(frame):
    """Absent is not off."""
    assert [] == found(look(film(frame, until=10)))
