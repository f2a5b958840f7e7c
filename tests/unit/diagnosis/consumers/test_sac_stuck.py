from tests.unit.diagnosis.consumers.results import ever, found, only
from tests.unit.diagnosis.pictures import WORKED, consumer, film, look, stuck, text


def sac(t, *, standby=True, **change):
    """The active consumer hangs from second 60 on; another one stands by."""
    picture = stuck(t, of={"arguments": {"x-single-active-consumer": True}, "consumers": 2}, **change)
    waits = consumer(tag="standby", channel_name="other (1)", active=False, activity_status="waiting")
    return {**picture, "consumers": (*picture["consumers"], *([waits] if standby else []))}


def test_a_stuck_active_consumer_with_standbys_is_a_finding_of_its_own():
    """More instances do not help; closing the connection of the active one does."""
    finding = only(look(film(sac, until=90)))

    assert ("sac-stuck", "critical", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (1, "billing") == (finding.facts["standbys"], finding.facts["stuck_consumer"]["client"])
    assert "The active consumer, 'billing'," in text(finding).cause
    assert any("api/connections/10.0.0.7" in (step.command or "") for step in text(finding).steps)


def test_it_is_information_early():
    """After 15 s."""
    assert [("sac-stuck", "info", "orders")] == found(look(film(sac, until=75)))


def test_without_a_standby_it_is_a_stuck_consumer():
    """More instances help there."""
    assert {"stuck-consumer"} == ever([look(film(lambda t: sac(t, standby=False), until=90))])


def test_a_working_active_consumer_is_no_finding():
    """Its standbys wait by design."""
    assert [] == found(look(film(sac, until=WORKED)))
