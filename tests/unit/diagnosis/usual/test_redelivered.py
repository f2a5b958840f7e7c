"""Redeliveries beyond what is usual, that are no loop."""

import pytest

from tests.unit.diagnosis.pictures import film, look, told
from tests.unit.diagnosis.test_requeue_loop import loop
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, band, known, one_of, told_of

RULE = "requeue-loop"
PARTLY = {"rate": 10.0, "share": 0.25, "acked": 30.0, "published": 30.0}


def verdict(bands, *, until=60, **fields):
    """A quarter of the deliveries is repeated, ten a second."""
    window = film(lambda t: loop(t, **{**PARTLY, **fields}), until=until)
    return look(window, baselines=known(bands))


def test_far_more_redeliveries_than_usual_are_mentioned():
    """Most messages get through, so it is no loop."""
    finding = one_of(RULE, verdict({"redelivered": band(0.5, 2)}))

    assert [] == told_of(RULE, verdict({}))
    assert ("info", "orders") == (finding.severity, finding.subject.name)
    assert "10/s, and 0.5 to 2/s is usual" in finding.summary
    assert "0.5 to 2/s at this hour of the week, from 6 weeks" in told(finding)


@pytest.mark.parametrize(
    ("bands", "fields"),
    [
        ({"redelivered": band(5, 12)}, {}),
        ({"redelivered": NotYet(NoBand.FEW_DAYS, 2)}, {}),
        ({"redelivered": band(0, 0.01)}, {"rate": 0.5}),
        ({"redelivered": band(0.5, 2)}, {"start": 22, "end": 26}),
        ({"redelivered": band(0.5, 2)}, {"until": 15}),
    ],
    ids=["by design", "not yet", "hardly any", "after a restart", "a moment ago"],
)
def test_what_may_have_another_reason_is_not(bands, fields):
    """A consumer that comes back gets again what it held, once."""
    assert [] == told_of(RULE, verdict(bands, **fields))


def test_a_loop_is_a_loop_however_usual():
    """It is told as ever: a queue may lose what comes again too often."""
    window = film(loop, until=40)

    assert [("warning", "queue", "orders")] == told_of(
        RULE, look(window, baselines=known({"redelivered": band(50, 99)}))
    )
