import pytest

from ackscope.snapshot import Overview, Part
from diagnosis.pages import pages
from tests.unit.diagnosis.pictures import film, look, moment


def blind_to(verdict):
    """Findings of this rule."""
    return [finding for finding in verdict.findings if finding.rule == "monitoring-blind-spot"]


def with_overview(**fields):
    """A broker with these fields in its overview."""
    known = {"rabbitmq_version": "4.3.6", "statistics": True, "rates_mode": "basic", **fields}
    return lambda _t: {"overview": Overview(**known)}


def test_hidden_queues_are_a_warning():
    """The monitoring user has no permission on some virtual host."""
    (finding,) = blind_to(look(film(lambda _t: {"hidden_queues": 3}, until=10)))

    assert ("warning", "cluster", ()) == (finding.severity, finding.subject.kind, finding.consequences)
    assert {
        "hidden_queues": 3,
        "statistics_off": False,
        "rates_off": False,
        "figures_from_metrics": False,
    } == finding.facts


@pytest.mark.parametrize(
    ("fields", "fact"), [({"statistics": False}, "statistics_off"), ({"rates_mode": "none"}, "rates_off")]
)
def test_a_broker_without_counters_is_reported(fields, fact):
    """Most rules have nothing to compare."""
    (finding,) = blind_to(look(film(with_overview(**fields), until=10)))

    assert [fact] == [name for name in ("statistics_off", "rates_off") if finding.facts[name]]


def test_all_that_is_hidden_is_one_finding():
    """Queues and statistics."""
    frame = {**with_overview(statistics=False)(0), "hidden_queues": 1}
    (finding,) = blind_to(look(film(lambda _t: frame, until=10)))

    assert {
        "hidden_queues": 1,
        "statistics_off": True,
        "rates_off": False,
        "figures_from_metrics": False,
    } == finding.facts


@pytest.mark.parametrize(
    "frame",
    [
        lambda _t: {},
        lambda _t: {"hidden_queues": None},
        lambda t: {"hidden_queues": int(t == 10)},
        lambda t: {"hidden_queues": int(t >= 5)},
        with_overview(rates_mode=None),
    ],
    ids=["healthy", "absent", "one poll only", "two polls only", "mode absent"],
)
def test_other_brokers_are_not_reported(frame):
    """Queues come and go between two requests."""
    assert [] == blind_to(look(film(frame, until=10)))


@pytest.mark.parametrize(("rate", "hidden", "reported"), [(5, 1, 0), (5, 6, 0), (0.4, 2, 0), (5, 40, 40), (0, 1, 1)])
def test_queues_that_live_for_a_moment_are_not_hidden(rate, hidden, reported):
    """A reply queue for each call is deleted between the overview and the list."""

    def frame(t):
        churn = {"queue_created": int(rate * t) + 1, "queue_deleted": int(rate * t)}
        return {**with_overview(churn=churn)(t), "hidden_queues": hidden}

    verdict = look(film(frame, until=10))

    assert [reported] * bool(reported) == [each.facts["hidden_queues"] for each in blind_to(verdict)]
    assert bool(reported) == any(each.reason == "hidden_queues" for each in verdict.inconclusive)


@pytest.mark.parametrize(("rate", "hidden", "reported"), [(2.0, 0, 0), (0.3, 0, 0), (2.0, 7, 7), (0.0, 3, 3)])
def test_queues_created_since_the_list_was_read_are_not_hidden(rate, hidden, reported):
    """The list is read every 15 s, the overview every 5 s; nothing is deleted."""

    def frame(t):
        read = t // 15 * 15
        listed = Part(value=(), at=moment(read), seconds=0.1)
        created = int(rate * t)
        overview = with_overview(churn={"queue_created": 40 + created, "queue_deleted": 0})(t)
        return {**overview, "queues": listed, "hidden_queues": hidden + created - int(rate * read)}

    verdict = look(film(frame, until=40))

    assert [reported] * bool(reported) == [each.facts["hidden_queues"] for each in blind_to(verdict)]


def test_it_explains_nothing():
    """Other findings are causes of their own."""
    assert () == pages()["monitoring-blind-spot"].explains
