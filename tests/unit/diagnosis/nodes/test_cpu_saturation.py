import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import frame, round_trip_probe
from tests.unit.diagnosis.pictures import NODE, evidence, film, found, look, only, queue


def test_it_is_reported_early_and_becomes_a_warning_after_two_minutes():
    """A start or a burst of connections ends sooner, and the finding gives the limit."""
    early = only(look(film(frame(run_queue=40), until=20)))

    assert ("cpu-saturation", "info", "early") == (early.rule, early.severity, early.certainty)
    assert (40, 4, 120.0) == tuple(early.facts[key] for key in ("run_queue", "cores", "warning_after_seconds"))
    assert [("cpu-saturation", "warning", NODE)] == found(look(film(frame(run_queue=40), until=150)))


def test_three_of_four_readings_must_show_it():
    """The run queue is a sample of one moment: it may be short or long once by chance."""
    mostly = film(frame(run_queue=lambda t: 1 if t % 20 == 5 else 40), until=150)
    rarely = film(frame(run_queue=lambda t: 40 if t % 20 == 5 else 1), until=150)

    assert [("cpu-saturation", "warning", NODE)] == found(look(mostly))
    assert [] == found(look(rarely))


def test_the_run_queue_is_compared_with_the_number_of_cores():
    """40 waiting processes are few for 16 cores."""
    assert [] == found(look(film(frame(run_queue=40, processors=16), until=150)))


def test_it_ends_when_the_run_queue_is_short_again():
    """A long run queue in the past is no fault."""
    assert [] == found(look(film(frame(run_queue=lambda t: 40 if t < 130 else 0), until=150)))


def test_a_single_diagnosis_reports_it_as_information():
    """It has two readings."""
    window = film(frame(run_queue=40), until=6, every=6)

    assert [("cpu-saturation", "info", NODE)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_objects_that_do_most_work_are_named():
    """By reductions since the previous reading, together with the broker round trip."""

    def busy(t):
        return {
            **frame(run_queue=40)(t),
            "queues": (queue("hot", reductions=int(9e6 * t)), queue("idle", reductions=5)),
        }

    finding = only(look(film(busy, until=30), outcomes=(round_trip_probe(0.2),)))

    assert [{"kind": "queue", "vhost": "/", "name": "hot", "reductions_rate": 9e6}] == finding.facts["busiest"]
    assert 0.2 == evidence(finding, "round_trip").value
    assert ["hot"] == [queue.name for queue in finding.involved.queues]


def test_what_clients_open_is_evidence():
    """Where it is one a second or more: each costs CPU."""
    churn = lambda t: {"connection_created": int(20 * t), "channel_created": 7, "queue_created": 7}  # noqa: E731
    finding = only(look(film(frame(run_queue=40, churn=churn), until=30)))

    assert {"connection": 20.0} == evidence(finding, "opened").facts["opened"]


@pytest.mark.parametrize("fields", [{"run_queue": None}, {"processors": None}, {"running": False}])
def test_absent_values_prove_nothing(fields):
    """Absent is not zero."""
    result = look(film(frame(**{"run_queue": 90, **fields}), until=150))

    assert "cpu-saturation" not in [finding.rule for finding in result.findings]
