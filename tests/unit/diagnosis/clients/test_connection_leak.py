from ackscope.snapshot import Overview
from tests.unit.diagnosis.pictures import connection, film, found, look, only


def accumulating(t, rate=2.0, start=1, step=None):
    """An application with this many more connections each second."""
    number = int(start + rate * t) if step is None else step(t)
    mine = tuple(
        connection(f"10.0.0.7:{port} -> 10.0.0.1:5672", user="guest", peer_host="10.0.0.7")
        for port in range(50000, 50000 + number)
    )
    overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", connections=number)
    return {"overview": overview, "connections": mine}


def test_an_application_that_accumulates_connections_is_information():
    """By its name, with the number of its connections."""
    finding = only(look(film(accumulating, until=30)))

    assert ("connection-leak", "info", "billing") == (finding.rule, finding.severity, finding.subject.name)
    expected = {"client": "billing", "connections": 61, "growth": 50, "growth_seconds": 25.0}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ["of_client", "of_cluster"] == [item.key for item in finding.evidence]


def test_hundreds_that_grow_for_minutes_are_a_warning():
    """The rate does not matter."""
    slow = film(lambda t: accumulating(t, rate=0.05, start=230), until=400)

    assert [("connection-leak", "warning", "billing")] == found(look(slow))


def test_a_start_of_many_is_not_reported():
    """One step, after which the number stays."""
    assert [] == found(look(film(lambda t: accumulating(t, step=lambda t: 60 if t > 20 else 1), until=40)))
    assert [] == found(look(film(lambda t: accumulating(t, rate=0, start=300), until=400)))


def test_connections_that_come_and_go_are_no_leak():
    """Their number rises and falls."""
    assert [] == found(look(film(lambda t: accumulating(t, step=lambda t: 30 + 20 * (int(t / 5) % 2)), until=60)))
