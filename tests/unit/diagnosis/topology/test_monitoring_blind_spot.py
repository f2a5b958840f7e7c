import pytest

from ackscope.snapshot import Overview
from diagnosis.pages import pages
from tests.unit.diagnosis.pictures import film, look, told


def blind_to(verdict):
    """What this rule found."""
    return [finding for finding in verdict.findings if finding.rule == "monitoring-blind-spot"]


def saying(**fields):
    """An overview that says so."""
    said = {"rabbitmq_version": "4.3.6", "statistics": True, "rates_mode": "basic", **fields}
    return lambda _t: {"overview": Overview(**said)}


def test_hidden_queues_are_a_warning():
    """The user that asks has no permission on some virtual host."""
    (finding,) = blind_to(look(film(lambda _t: {"hidden_queues": 3}, until=10)))

    assert ("warning", "cluster", ()) == (finding.severity, finding.subject.kind, finding.consequences)
    assert "3 queues not shown" in finding.summary
    assert "set_permissions -p VHOST USER" in told(finding)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"statistics": False}, "statistics are turned off"), ({"rates_mode": "none"}, "message rates are turned off")],
)
def test_a_broker_that_keeps_no_figures_is_told(fields, words):
    """Most rules have nothing to compare."""
    (finding,) = blind_to(look(film(saying(**fields), until=10)))

    assert words in finding.summary


def test_all_that_is_hidden_is_one_finding():
    """Queues and statistics."""
    frame = {**saying(statistics=False)(0), "hidden_queues": 1}
    (finding,) = blind_to(look(film(lambda _t: frame, until=10)))

    assert "1 queue not shown" in finding.summary
    assert "statistics are turned off" in finding.summary


@pytest.mark.parametrize(
    "frame",
    [
        lambda _t: {},
        lambda _t: {"hidden_queues": None},
        lambda t: {"hidden_queues": int(t == 10)},
        lambda t: {"hidden_queues": int(t >= 5)},
        saying(rates_mode=None),
    ],
    ids=["healthy", "not told", "one look only", "two looks only", "mode not told"],
)
def test_the_rest_is_quiet(frame):
    """Queues come and go between two requests."""
    assert [] == blind_to(look(film(frame, until=10)))


def test_it_explains_nothing():
    """What else is found stands for itself."""
    assert () == pages()["monitoring-blind-spot"].explains
