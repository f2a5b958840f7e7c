from dataclasses import replace

import pytest

from ackscope.findings import Finding, Severity, Subject
from diagnosis.hysteresis import apply_hysteresis

NOON = "2026-01-01T12:00:00Z"


def finding(name="orders", since=NOON, **fields):
    """A finding about a queue."""
    return Finding(
        rule="no-consumer",
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=name, vhost="/"),
        since=since,
        **fields,
    )


def at(seconds):
    """Return the time this many seconds after noon."""
    return f"2026-01-01T12:{seconds // 60:02}:{seconds % 60:02}Z"


def test_a_finding_keeps_the_earliest_moment_it_was_reported_since():
    """The window forgets older readings; the finding keeps its time."""
    (now,) = apply_hysteresis([finding(since=at(60))], [finding(since=at(5), last_seen=at(55))], at(60), hold=20)

    assert (at(5), at(60)) == (now.since, now.last_seen)


@pytest.mark.parametrize(("later", "stays"), [(5, True), (20, True), (21, False), (300, False)])
def test_it_stays_for_a_short_while_after_its_evidence(later, stays):
    """One reading without evidence does not end a finding; a minute without it does."""
    held = apply_hysteresis([], [finding(last_seen=at(0))], at(later), hold=20)

    assert stays == bool(held)
    assert all(each.last_seen == at(0) for each in held)


def test_what_is_held_is_not_held_for_ever():
    """A held finding still ages with its evidence."""
    once = apply_hysteresis([], [finding(last_seen=at(0))], at(15), hold=20)

    assert [] == apply_hysteresis([], once, at(25), hold=20)


def test_a_consequence_is_held_as_a_finding_of_its_own():
    """The cause may have ended before the consequence."""
    child = finding("stock", last_seen=at(0))
    cause = replace(finding(last_seen=at(0)), consequences=(child,))

    assert ["orders", "stock"] == sorted(each.subject.name for each in apply_hysteresis([], [cause], at(10), hold=20))
    assert all(not each.consequences for each in apply_hysteresis([], [cause], at(10), hold=20))


def test_it_is_no_less_urgent_at_once():
    """After one milder reading the finding keeps its severity and its `since`."""
    worse = finding(last_seen=at(0))
    less = replace(finding(), severity=Severity.INFO)

    assert [worse] == apply_hysteresis([less], [worse], at(20), hold=20)
    assert [Severity.INFO] == [each.severity for each in apply_hysteresis([less], [worse], at(21), hold=20)]


def test_it_is_more_urgent_at_once():
    """A higher severity is reported at once."""
    less = replace(finding(last_seen=at(0)), severity=Severity.INFO)

    assert [Severity.WARNING] == [each.severity for each in apply_hysteresis([finding()], [less], at(5), hold=20)]


def test_the_urgency_of_a_consequence_is_not_kept_in_its_cause():
    """A cause takes over the severity of its worst consequence, and loses it together with the consequence."""
    child = finding("stock", last_seen=at(0))
    cause = replace(finding(last_seen=at(0)), consequences=(child,))
    alone = replace(finding(), severity=Severity.INFO)

    (now,) = [each for each in apply_hysteresis([alone], [cause], at(5), hold=20) if each.subject.name == "orders"]

    assert (Severity.INFO, at(5)) == (now.severity, now.last_seen)


def test_what_has_lasted_began_that_long_ago():
    """The broker may tell of a time before the first reading."""
    (one,) = apply_hysteresis([finding(since=at(60), facts={"held_seconds": 45.0})], [], at(70), hold=20)
    (other,) = apply_hysteresis([finding(since=at(10), facts={"held_seconds": 45.0})], [], at(70), hold=20)

    assert (at(25), at(10)) == (one.since, other.since)


@pytest.mark.parametrize(
    ("held", "known", "stated"),
    [(560.0, 720.0, 725.0), (560.0, 40.0, 560.0), (40.0, 720.0, 40.0), (730.0, 720.0, 730.0)],
)
def test_a_duration_goes_on_where_the_window_forgets(held, known, stated):
    """A shorter one means that something was settled in between."""
    before = finding(last_seen=at(800), facts={"held_seconds": known})
    (now,) = apply_hysteresis([finding(facts={"held_seconds": held})], [before], at(805), hold=20)

    assert stated == now.facts["held_seconds"]
