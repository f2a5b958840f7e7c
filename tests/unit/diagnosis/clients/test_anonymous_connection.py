import pytest

from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only, told


def nameless(**fields):
    """A connection that says nothing, beside one that does."""
    said = {
        "client_name": None,
        "client_product": "Pika",
        "protocol": "AMQP 0-9-1",
        "user": "guest",
        "peer_host": "10.0.0.7",
        "connected_at": WALL - 60,
    }
    one = connection("10.0.0.7:50007 -> 10.0.0.1:5672", **{**said, **fields})
    other = connection(protocol="AMQP 0-9-1", connected_at=WALL - 60)
    return lambda _t: {"connections": (other, one)}


def test_connections_without_a_name_are_told_once_for_the_cluster():
    """With what is known of them."""
    finding = only(look(film(nameless(), until=10)))

    assert ("anonymous-connection", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    assert "1 of 2 connections without a name" in finding.summary
    assert "1 of user 'guest' at 10.0.0.7 (Pika)" in told(finding)


@pytest.mark.parametrize(
    "fields",
    [
        {"client_name": "stock"},
        {"protocol": "MQTT 3.1.1"},
        {"connected_at": WALL + 8},
        {"client_name": "ackscope-probe-1"},
    ],
    ids=["named", "another protocol", "just come", "our own"],
)
def test_the_rest_is_quiet(fields):
    """Only AMQP knows such names, and a moment's connection is nobody's trouble."""
    assert [] == found(look(film(nameless(**fields), until=10)))
