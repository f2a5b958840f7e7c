import pytest

from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only


def nameless(**fields):
    """A connection without a name, and one with a name."""
    defaults = {
        "client_name": None,
        "client_product": "Pika",
        "protocol": "AMQP 0-9-1",
        "user": "guest",
        "peer_host": "10.0.0.7",
        "connected_at": WALL - 60,
    }
    one = connection("10.0.0.7:50007 -> 10.0.0.1:5672", **{**defaults, **fields})
    other = connection(protocol="AMQP 0-9-1", connected_at=WALL - 60)
    return lambda _t: {"connections": (other, one)}


def test_connections_without_a_name_are_one_finding_for_the_cluster():
    """With user, host and library."""
    finding = only(look(film(nameless(), until=10)))

    assert ("anonymous-connection", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    assert (1, 2) == (finding.facts["nameless"], finding.facts["connections"])
    origin = {"user": "guest", "host": "10.0.0.7", "library": "Pika", "connections": 1}
    assert [origin] == finding.facts["origins"]


@pytest.mark.parametrize(
    "fields",
    [
        {"client_name": "stock"},
        {"protocol": "MQTT 3.1.1"},
        {"connected_at": WALL + 8},
        {"client_name": "ackscope-probe-1"},
    ],
    ids=["named", "another protocol", "just opened", "our own"],
)
def test_other_connections_are_not_reported(fields):
    """Only AMQP has such names, and a brief connection does not matter."""
    assert [] == found(look(film(nameless(**fields), until=10)))
