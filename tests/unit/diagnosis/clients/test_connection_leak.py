from ackscope.snapshot import Overview
from tests.unit.diagnosis.pictures import connection, film, found, look, only


def piled(t, rate=2.0, start=1, step=None):
    """An application with so many connections more each second."""
    number = int(start + rate * t) if step is None else step(t)
    mine = tuple(
        connection(f"10.0.0.7:{port} -> 10.0.0.1:5672", user="guest", peer_host="10.0.0.7")
        for port in range(50000, 50000 + number)
    )
    overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", connections=number)
    return {"overview": overview, "connections": mine}


def test_an_application_that_piles_up_connections_is_told_early():
    """By its name, with how many it has."""
    finding = only(look(film(piled, until=30)))

    assert ("connection-leak", "info", "billing") == (finding.rule, finding.severity, finding.subject.name)
    assert "61 connections open, 50 more than 25 s ago" in finding.summary


def test_hundreds_that_grow_for_minutes_are_a_warning():
    """However slowly."""
    slow = film(lambda t: piled(t, rate=0.05, start=230), until=400)

    assert [("connection-leak", "warning", "billing")] == found(look(slow))


def test_a_start_of_many_is_quiet():
    """One step, and then it stands."""
    assert [] == found(look(film(lambda t: piled(t, step=lambda t: 60 if t > 20 else 1), until=40)))
    assert [] == found(look(film(lambda t: piled(t, rate=0, start=300), until=400)))


def test_connections_that_come_and_go_are_no_leak():
    """Their number goes up and down."""
    assert [] == found(look(film(lambda t: piled(t, step=lambda t: 30 + 20 * (int(t / 5) % 2)), until=60)))
