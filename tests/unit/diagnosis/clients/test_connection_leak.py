import pytest

from ackscope.snapshot import Overview
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only


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


def opened(t, *, every=2.0, until=1e9, lives=None, at_once=0, others=0, host="10.0.0.7"):
    """An application that opens a connection each `every` seconds, until second `until`; each lives so many seconds.

    `at_once` more were opened in second 10; the number of other connections of the cluster falls by `others` a second.
    """
    times = [each * every for each in range(int(min(t, until) / every) + 1)]
    times += [10.0 + each / 100 for each in range(at_once)] if t >= 10 else []
    here = [at for at in times if lives is None or t - at < lives]
    mine = tuple(
        connection(f"{host}:{50000 + number} -> b", user="guest", peer_host=host, connected_at=WALL + at)
        for number, at in enumerate(here)
    )
    total = len(here) + 3 + int(others * (400 - t))
    overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", connections=total)
    return {"overview": overview, "connections": mine}


@pytest.mark.parametrize("every", [2.0, 5.0, 11.0])
def test_a_slow_leak_is_found_by_the_times_at_which_connections_were_opened(every):
    """One after another until now; after five minutes it is no start."""
    early, late = (only(look(film(lambda t: opened(t, every=every), until=until))) for until in (40 + 16 * every, 400))

    assert ("connection-leak", "info") == (early.rule, early.severity)
    assert ("connection-leak", "warning") == (late.rule, late.severity)
    assert pytest.approx(400 / every, abs=5) == late.facts["growth"]


@pytest.mark.parametrize(
    "fields",
    [{"until": 60.0}, {"lives": 80.0}, {"every": 400.0, "at_once": 60}, {"others": 1.0}, {"every": 40.0}],
    ids=["a start is over", "each lives for 80 s", "all at once", "others are closed", "a few"],
)
def test_other_applications_leak_none(fields):
    """Their connections were opened together, or as many are closed."""
    assert [] == found(look(film(lambda t: opened(t, **fields), until=300)))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"every": 1.2}, [("connection-leak", "info", "billing")]),
        ({"every": 2.0, "host": "10.0.0.9"}, [("connection-leak", "info", "billing")]),
        ({"every": 1.2, "lives": 40.0}, []),
        ({"every": 1.2, "until": 100.0}, []),
        ({"every": 1e6, "at_once": 60}, []),
    ],
    ids=["leaks", "other host", "closed after a while", "stopped", "a pool"],
)
def test_two_readings_show_a_leak_by_the_times_at_which_connections_were_opened(fields, expected):
    """None of them was closed between the readings, and others were opened."""
    window = film(lambda t: opened(t, **fields), start=112.0, until=120.0, every=8.0)

    assert expected == found(look(window, thresholds=Thresholds.brief()))
