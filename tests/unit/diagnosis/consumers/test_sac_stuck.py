from tests.unit.diagnosis.consumers.own import ever, found, only
from tests.unit.diagnosis.pictures import WORKED, consumer, film, look, stuck, told


def sac(t, *, standby=True, **change):
    """The active consumer hangs from second 60 on; another one stands by."""
    picture = stuck(t, of={"arguments": {"x-single-active-consumer": True}, "consumers": 2}, **change)
    waits = consumer(tag="standby", channel_name="other (1)", active=False, activity_status="waiting")
    return {**picture, "consumers": (*picture["consumers"], *([waits] if standby else []))}


def test_a_stuck_active_consumer_with_standbys_is_a_case_of_its_own():
    """More instances do not help; closing the active one does."""
    finding = only(look(film(sac, until=90)))

    assert ("sac-stuck", "critical", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "1 standby get nothing until it goes" in finding.cause
    assert "'billing', which is the active one" in finding.cause
    assert "docs/runbooks/sac-stuck.md" == finding.runbook
    assert "api/connections/10.0.0.7" in told(finding)


def test_it_is_mentioned_early():
    """Fifteen seconds are enough for information."""
    assert [("sac-stuck", "info", "orders")] == found(look(film(sac, until=75)))


def test_without_a_standby_it_is_a_stuck_consumer():
    """There the usual remedy helps."""
    assert {"stuck-consumer"} == ever([look(film(lambda t: sac(t, standby=False), until=90))])


def test_a_working_active_consumer_is_left_alone():
    """Its standbys wait by design."""
    assert [] == found(look(film(sac, until=WORKED)))
