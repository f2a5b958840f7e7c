"""More redeliveries than usual, without a loop."""

import pytest

from tests.unit.diagnosis.pictures import film, look, text
from tests.unit.diagnosis.test_requeue_loop import loop
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, band, known, one_of, reported_of

RULE = "requeue-loop"
PARTLY = {"rate": 10.0, "share": 0.25, "acked": 30.0, "published": 30.0}


def result(bands, *, until=60, **fields):
    """A quarter of the deliveries are redeliveries, ten a second."""
    window = film(lambda t: loop(t, **{**PARTLY, **fields}), until=until)
    return look(window, baselines=known(bands))


def test_far_more_redeliveries_than_usual_are_information():
    """Most messages get through, so it is no loop."""
    finding = one_of(RULE, result({"redelivered": band(0.5, 2)}))

    assert [] == reported_of(RULE, result({}))
    assert ("info", "orders") == (finding.severity, finding.subject.name)
    assert (10.0, 0.5, 2) == (
        finding.facts["redelivery_rate"],
        finding.facts["band_of"]["low"],
        finding.facts["band_of"]["high"],
    )
    assert "redelivers 10/s, far more than usual" in text(finding).summary


@pytest.mark.parametrize(
    ("bands", "fields"),
    [
        ({"redelivered": band(5, 12)}, {}),
        ({"redelivered": NotYet(NoBand.FEW_DAYS, 2)}, {}),
        ({"redelivered": band(0, 0.01)}, {"rate": 0.5}),
        ({"redelivered": band(0.5, 2)}, {"start": 22, "end": 26}),
        ({"redelivered": band(0.5, 2)}, {"until": 15}),
    ],
    ids=["by design", "no baseline yet", "hardly any", "after a restart", "just now"],
)
def test_redeliveries_for_another_reason_are_no_finding(bands, fields):
    """A consumer that reconnects gets its unacknowledged messages once more."""
    assert [] == reported_of(RULE, result(bands, **fields))


def test_a_loop_is_a_loop_however_usual():
    """It is reported as always: a queue may drop messages that are redelivered too often."""
    window = film(loop, until=40)

    assert [("warning", "queue", "orders")] == reported_of(
        RULE, look(window, baselines=known({"redelivered": band(50, 99)}))
    )
