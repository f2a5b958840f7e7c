import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import asked, frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue, told


def test_it_is_told_early_and_becomes_a_warning_after_two_minutes():
    """A start or a burst of connections ends before, and the finding says so."""
    early = only(look(film(frame(run_queue=40), until=20)))

    assert ("cpu-saturation", "info") == (early.rule, early.severity.value)
    assert "a warning after 2 min" in early.summary
    assert [("cpu-saturation", "warning", NODE)] == found(look(film(frame(run_queue=40), until=150)))


def test_three_of_four_readings_must_show_it():
    """It is a sample of one moment: it may be short once in between, and long once by chance."""
    mostly = film(frame(run_queue=lambda t: 1 if t % 20 == 5 else 40), until=150)
    rarely = film(frame(run_queue=lambda t: 40 if t % 20 == 5 else 1), until=150)

    assert [("cpu-saturation", "warning", NODE)] == found(look(mostly))
    assert [] == found(look(rarely))


def test_it_is_judged_by_processor():
    """Forty that wait are few for sixteen processors."""
    assert [] == found(look(film(frame(run_queue=40, processors=16), until=150)))


def test_it_is_over_when_it_is_short_again():
    """The past is no fault."""
    assert [] == found(look(film(frame(run_queue=lambda t: 40 if t < 130 else 0), until=150)))


def test_one_look_tells_of_it_as_information():
    """Two readings of one moment each."""
    window = film(frame(run_queue=40), until=6, every=6)

    assert [("cpu-saturation", "info", NODE)] == found(look(window, thresholds=Thresholds.one_shot()))


def test_what_works_most_is_named():
    """By reductions since the reading before, with what a question to the broker takes."""

    def busy(t):
        return {
            **frame(run_queue=40)(t),
            "queues": (queue("hot", reductions=int(9e6 * t)), queue("idle", reductions=5)),
        }

    finding = only(look(film(busy, until=30), outcomes=(asked(0.2),)))

    assert "queue 'hot' in vhost '/' (9.0 million reductions/s)" in finding.cause
    assert "200.0 ms" in told(finding)
    assert "idle" not in told(finding)


@pytest.mark.parametrize("fields", [{"run_queue": None}, {"processors": None}, {"running": False}])
def test_absent_figures_tell_nothing(fields):
    """Absent is not zero."""
    verdict = look(film(frame(**{"run_queue": 90, **fields}), until=150))

    assert "cpu-saturation" not in [finding.rule for finding in verdict.findings]
