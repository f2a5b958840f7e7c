import pytest

from tests.unit.diagnosis.pictures import text
from tests.unit.diagnosis.probing.heard import heard, of, one, outcome

RULE = "probe-redelivered"


def again(**fields):
    """Return a delivery stream with redelivered messages after its connection was lost."""
    usual = {"redeliveries": 4, "duplicates": 1, "connects": 3, "success": False, "outcomes": {"lost": 2}}
    return outcome("delivery", "classic", **{**usual, **fields})


def test_messages_that_came_again_are_a_fact():
    """Redelivery is part of at-least-once delivery."""
    finding = one(RULE, heard(again()))

    assert ("info", "delivery.classic") == (finding.severity, finding.subject.name)
    assert (4, 1, 3, 2) == tuple(finding.facts[key] for key in ("redeliveries", "duplicates", "connects", "lost"))


def test_a_connection_that_stood_points_to_the_queue():
    """The leader of the queue moved."""
    assert "the queue leader moved" in text(one(RULE, heard(again(connects=1)))).cause


@pytest.mark.parametrize(
    "fields", [{"redeliveries": 0, "duplicates": 0}, {"redeliveries": None, "duplicates": None}, {"success": True}]
)
def test_a_clean_minute_is_left_alone(fields):
    """The count starts with the probe."""
    assert [] == of(RULE, heard(again(**fields)))


def test_the_redelivery_probe_has_messages_again_on_purpose():
    """Redelivery is what this probe measures."""
    assert [] == of(RULE, heard(outcome("redelivery", "classic", redeliveries=50, success=False)))
