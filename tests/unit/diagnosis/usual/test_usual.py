import pytest

from ackscope.baselines import Baselines, NoBand, NotYet
from ackscope.findings import Finding, Severity, Subject
from diagnosis.thresholds import Thresholds
from diagnosis.usual import baseline_evidence, is_less, is_more, is_sure, of_queue
from diagnosis.view import View
from tests.unit.diagnosis.pictures import film, moment, queue, text
from tests.unit.diagnosis.usual.bands import band, known

HOUR = 3600.0


def view(baselines, *, later=0.0, thresholds=None):
    """Return a view of one queue at this second of the film."""
    window = film(lambda _: {"queues": (queue(),)}, until=0)
    return View(window, (), moment(later), thresholds or Thresholds(), baselines)


def test_what_is_usual_is_found_by_object_and_measure():
    """A measure without history returns the reason."""
    looked = view(known({"ready": band(1, 9)}))

    assert band(1, 9) == of_queue(looked, queue(), "ready")
    assert NotYet(NoBand.NO_HISTORY_OF_OBJECT) == of_queue(looked, queue(), "acked")
    assert NotYet(NoBand.NO_HISTORY_OF_OBJECT) == of_queue(looked, queue("other"), "ready")


def test_without_history_nothing_is_usual():
    """Without history there is no evidence about baselines either."""
    looked = view(None)

    assert NotYet(NoBand.NO_HISTORY_READ) == of_queue(looked, queue(), "ready")
    assert [] == list(baseline_evidence(looked, of_queue(looked, queue(), "ready"), "ready"))


def test_a_pipeline_that_made_no_bands_yet_is_silent():
    """An evidence without content would be noise."""
    looked = view(Baselines())

    assert [] == list(baseline_evidence(looked, of_queue(looked, queue(), "ready"), "ready"))


@pytest.mark.parametrize(("hours", "used"), [(0, True), (1, True), (2, False), (24 * 7, True)])
def test_the_bands_of_another_hour_do_not_count(hours, used):
    """Bands of the hour just before count, because the next ones are read within a minute."""
    looked = view(known({"ready": band(1, 9)}), later=hours * HOUR)

    assert used is (band(1, 9) == of_queue(looked, queue(), "ready"))


def test_bands_of_a_pipeline_that_ended_long_ago_do_not_count():
    """The limit is two weeks, and the reason is shown."""
    looked = view(known({"ready": band(1, 9)}, age=15 * 86400.0))

    assert NotYet(NoBand.HISTORY_ENDED, 15) == of_queue(looked, queue(), "ready")


def described(found, measure):
    """Return the rendered evidence of a band."""
    (item,) = baseline_evidence(view(known({"ready": band(1, 9)})), found, measure)
    finding = Finding(
        rule="probe-path-slow",
        severity=Severity.INFO,
        subject=Subject(kind="probe", name="rtt"),
        facts={"node": None, "connect_seconds": 1.0, "round_trip_seconds": None, "broker_seconds": None},
        evidence=(item,),
    )
    (report,) = text(finding).evidence
    assert report.source == "rollups of the pipeline (history.rollups) table baselines"
    return f"{report.what}: {report.value}"


@pytest.mark.parametrize(
    ("found", "measure", "words"),
    [
        (
            band(0.002, 0.009),
            "confirm_p50",
            "usual median confirm latency: 2 to 9 ms at this hour of the week, from 6 weeks",
        ),
        (
            band(1, 9, days=1),
            "ready",
            "usual messages ready: 1 to 9 messages at this hour of the day, from 1 day",
        ),
        (NotYet(NoBand.FEW_DAYS, 2), "acked", "usual ack rate: not known yet: 2 of 3 days of history"),
        (NotYet(NoBand.HISTORY_ENDED, 15), "acked", "usual ack rate: not known: the history ended 15 days ago"),
    ],
    ids=["weeks", "days", "few-days", "ended"],
)
def test_a_band_is_shown_with_its_basis(found, measure, words):
    """Without a band, the evidence shows how much history is missing."""
    assert words == described(found, measure)


@pytest.mark.parametrize(
    ("low", "high", "measure", "words"),
    [
        (2, 9, "published", "2 to 9/s"),
        (5, 5, "ready", "5 messages"),
        (0.0005, 1.5, "confirm_p99", "0.5 ms to 1.5 s"),
        (0, 40_000, "ready", "0 to 40,000 messages"),
        (1, 2, "ready", "1 to 2 messages"),
        (-0.5, 2, "published", "0 to 2/s"),
        (0.92, 1.08, "busy", "92 to 100 %"),
        (1e9, 3e9, "mem_used", "954 MiB to 2.79 GiB"),
    ],
)
def test_edges_have_their_unit(low, high, measure, words):
    """The unit is shown once if both edges share it."""
    assert described(band(low, high), measure).endswith(f": {words} at this hour of the week, from 6 weeks")


@pytest.mark.parametrize(("made", "sure"), [({"weeks": 3}, True), ({"days": 3}, False), ({"days": 7}, True)])
def test_three_days_of_trouble_are_not_usual(made, sure):
    """A band must rest on a week of days, or on weeks, to suppress a finding."""
    assert sure is is_sure(view(None), band(1, 9, **made))


def test_more_and_less_than_usual_have_a_margin():
    """A minute is noisier than the hours that a band is computed from."""
    looked = view(None)

    assert [False, False, True] == [is_more(looked, value, band(10, 20)) for value in (21, 60, 61)]
    assert [False, False, True] == [is_less(looked, value, band(10, 20)) for value in (9, 5, 4.9)]
    assert not is_more(looked, 1e9, NotYet(NoBand.FEW_DAYS, 2))
    assert not is_less(looked, 0, NotYet(NoBand.FEW_DAYS, 2))
