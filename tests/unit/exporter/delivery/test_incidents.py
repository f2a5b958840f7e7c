"""What a receiver gets, and when."""

from dataclasses import replace

from ackscope.clock import iso
from ackscope.findings import Inconclusive, Severity, Subject
from ackscope.triage import Triage
from exporter.delivery.incidents import (
    MAX_INCIDENTS,
    EndReason,
    EventKind,
    FindingIncident,
    IncidentKey,
    IncidentRecord,
)
from exporter.delivery.settings import QuietSettings, ReceiverSettings, RouteSettings
from tests.unit.exporter.made import WALL, SetClock, Verdicts, finding

HOOK = {"webhook": {"url": "http://127.0.0.1:9/hook"}}
NIGHT = QuietSettings(start="22:00", end="23:00")
"""The tests begin at 22:13 UTC on a Tuesday."""


def queue(name, **changes):
    """A finding about a queue."""
    return finding(subject=Subject(kind="queue", vhost="/", name=name), **changes)


class Receiver:
    """A record, and a clock; everything that is due is delivered unless `away`."""

    def __init__(self, settle=60.0, incidents=(), routes=None, **settings):
        self.clock, self.away = SetClock(), False
        routes = routes or (RouteSettings(receiver="r"),)
        self.record = IncidentRecord(ReceiverSettings(**HOOK, **settings), routes, settle, incidents, self.clock.now())

    def see(self, *findings, later=10.0, triage=None, **verdict):
        """Events of a diagnosis with these findings."""
        self.clock.mono += later
        self.record.observe(Verdicts(findings=findings, **verdict).of("shop"), triage or {}, self.clock.now())
        return self.look(later=0)

    def look(self, later=0.0):
        """Events that are due."""
        self.clock.mono += later
        due = self.record.due(self.clock.now())
        if not self.away:
            self.record.commit(due, self.clock.now())
        return [(it.kind.value, it.incident.key.name) for it in due]


def test_a_finding_starts_lasts_and_ends():
    """Each once, however often diagnosis sees it."""
    receiver = Receiver()
    found = [receiver.see(*seen) for seen in ([queue("a")], [queue("a")], [queue("a"), queue("b")], [queue("b")], [])]

    assert [[("start", "a")], [], [("start", "b")], [("resolve", "a")], [("resolve", "b")]] == found
    assert [] == receiver.record.all()


def test_a_loss_that_is_over_is_resolved():
    """Diagnosis keeps it as information, which is no message and no alert."""
    receiver = Receiver()
    over = queue("a", severity=Severity.INFO, over_since="2026-01-01T00:00:00Z")
    found = [receiver.see(*seen) for seen in ([queue("a")], [over], [over], [], [queue("a")])]

    assert [[("start", "a")], [("resolve", "a")], [], [], [("start", "a")]] == found


def test_a_change_of_severity_is_an_update_and_other_evidence_is_not():
    """A new rule among the consequences is one too."""
    receiver = Receiver()
    receiver.see(queue("a"))
    same = receiver.see(queue("a", seen_seconds=99.0))
    worse = receiver.see(queue("a", severity=Severity.CRITICAL))
    wider = receiver.see(queue("a", severity=Severity.CRITICAL, consequences=(queue("b", rule="stuck-consumer"),)))
    narrower = receiver.see(queue("a", severity=Severity.CRITICAL))

    assert ([], [("update", "a")], [("update", "a")], []) == (same, worse, wider, narrower)


def test_a_finding_that_lasts_is_repeated():
    """After the interval, not before."""
    receiver = Receiver(repeat=3600)
    receiver.see(queue("a"))

    assert [[], [("reminder", "a")], []] == [receiver.look(3599), receiver.look(1), receiver.look(1)]


def test_nothing_is_repeated_with_zero():
    """For receivers that have reminders of their own."""
    receiver = Receiver(repeat=0)
    receiver.see(queue("a"))

    assert [] == receiver.look(1e6)


def test_what_began_and_ended_while_the_receiver_was_away_is_missed_once():
    """What is still present starts, and what the receiver knew is resolved."""
    receiver = Receiver()
    receiver.see(queue("known"))
    receiver.away = True
    receiver.see(queue("known"), queue("short"), queue("lasts"))
    receiver.see(queue("lasts"))
    receiver.away = False
    first, second = receiver.see(queue("lasts")), receiver.see(queue("lasts"))

    assert {("resolve", "known"), ("missed", "short"), ("start", "lasts")} == set(first)
    assert [] == second


def test_a_finding_that_returns_before_its_end_was_delivered_is_the_same():
    """The receiver knows it, and nothing is to be said."""
    receiver = Receiver()
    receiver.see(queue("a"))
    receiver.away = True
    receiver.see()
    receiver.away = False

    assert [] == receiver.see(queue("a"))


def test_a_finding_that_follows_from_another_is_part_of_its_message():
    """Its own incident ends, with the reason."""
    receiver = Receiver()
    receiver.see(queue("a"))
    receiver.away = True
    receiver.see(queue("cause", consequences=(queue("a"),)))
    due = receiver.record.due(receiver.clock.now())
    ended = next(it.incident for it in due if it.kind is EventKind.RESOLVE)

    assert {("start", "cause"), ("resolve", "a")} == {(it.kind.value, it.incident.key.name) for it in due}
    assert (EndReason.JOINED, "cause") == (ended.reason, ended.joined.name)


def test_a_muted_finding_is_not_delivered_and_returns_after_the_mute():
    """A mute during the finding ends it for the receiver."""
    receiver = Receiver()
    mute = {queue("a").key: Triage(muted_until=iso(WALL + 60), muted_severity=Severity.WARNING)}
    quiet = receiver.see(queue("a"), triage=mute)
    start = receiver.see(queue("a"), later=100, triage=mute)
    longer = {queue("a").key: Triage(muted_until=iso(WALL + 900))}
    muted = receiver.see(queue("a"), triage=longer)
    worse = receiver.see(queue("b"), later=0)

    assert ([], [("start", "a")], [("resolve", "a")], [("start", "b")]) == (quiet, start, muted, worse)


def test_a_muted_finding_that_becomes_worse_is_delivered():
    """A mute covers what was there."""
    receiver = Receiver()
    mute = {queue("a").key: Triage(muted_until=iso(WALL + 600), muted_severity=Severity.WARNING)}
    receiver.see(queue("a"), triage=mute)

    assert [("start", "a")] == receiver.see(queue("a", severity=Severity.CRITICAL), triage=mute)


def test_an_inconclusive_rule_ends_nothing():
    """Its findings are unknown, not absent."""
    receiver = Receiver()
    receiver.see(queue("a"))
    unknown = receiver.see(inconclusive=(Inconclusive(rule="no-consumer", reason="x"),))
    not_checked = receiver.see(checked=("stuck-consumer",))

    assert ([], [], [("resolve", "a")]) == (unknown, not_checked, receiver.see())


def test_routes_choose_by_cluster_vhost_rule_and_severity():
    """The virtual host of a consequence counts too; information is not delivered unless a route names it."""
    shop = RouteSettings(receiver="r", clusters=("sh*",), vhosts=("team-a",), severities=(Severity.CRITICAL,))
    mine = Subject(kind="queue", vhost="team-a", name="mine")
    consequence = finding(subject=mine, severity=Severity.CRITICAL)
    node = finding(subject=Subject(kind="node", name="one"), rule="node-down", consequences=(consequence,))
    receiver = Receiver(routes=(shop,))
    received = receiver.see(queue("other", severity=Severity.CRITICAL), finding(subject=mine), node)

    assert [("start", "one")] == received
    assert [] == Receiver().see(queue("a", severity=Severity.INFO))


def test_a_finding_that_is_no_longer_for_the_receiver_ends():
    """It became less severe than the route says."""
    receiver = Receiver(routes=(RouteSettings(receiver="r", severities=(Severity.CRITICAL,)),))
    receiver.see(queue("a", severity=Severity.CRITICAL))
    receiver.away = True
    receiver.see(queue("a"))
    (event,) = receiver.record.due(receiver.clock.now())

    assert (EventKind.RESOLVE, EndReason.UNROUTED) == (event.kind, event.incident.reason)


def test_quiet_hours_hold_back_all_but_urgent_findings():
    """At their end, what is present starts, and what was over is missed."""
    receiver = Receiver(quiet=(NIGHT,))
    during = receiver.see(queue("short"), queue("lasts"), queue("urgent", severity=Severity.CRITICAL))
    over = receiver.see(queue("lasts"))
    after = receiver.look(later=3600)

    assert ([("start", "urgent")], [("resolve", "urgent")]) == (during, over)
    assert {("missed", "short"), ("start", "lasts")} == set(after)


def test_quiet_hours_are_of_a_time_zone_and_of_days():
    """A night belongs to the day on which it began. 22:13 UTC on a Tuesday is 23:13 in Berlin."""
    night = QuietSettings(start="23:00", end="06:00", days=("tue",), timezone="Europe/Berlin")
    held = [night.holds(Severity.WARNING, WALL + hours * 3600) for hours in (-1, 0, 4, 8, 24)]

    assert [False, True, True, False, False] == held


def restored(receiver):
    """The findings as the next process reads them."""
    return [replace(it, finding=None) for it in receiver.record.all()]


def test_a_restart_delivers_nothing_again_and_resolves_what_ended():
    """Diagnosis needs a while to find something again, so its absence counts only after some time."""
    before = Receiver()
    before.see(queue("lasts"), queue("ended"))
    after = Receiver(settle=60.0, incidents=restored(before))
    early = after.see(later=10)
    found_again = after.see(queue("lasts"), later=10)

    assert [[], [], [("resolve", "ended")]] == [early, found_again, after.see(queue("lasts"), later=60)]


def test_a_finding_that_waited_before_a_restart_is_not_lost():
    """It starts if it is found again, and is missed if not."""
    before = Receiver()
    before.away = True
    before.see(queue("lasts"), queue("short"))
    after = Receiver(settle=60.0, incidents=restored(before))
    early = after.look()

    assert [] == early
    assert [("start", "lasts")] == after.see(queue("lasts"))
    assert [("missed", "short")] == after.see(queue("lasts"), later=60)


def test_findings_of_a_removed_cluster_end():
    """For the receiver, nobody knows more about them."""
    receiver = Receiver()
    receiver.see(queue("a"))
    receiver.record.keep_clusters(["depot"], receiver.clock.now())

    assert [("resolve", "a")] == receiver.look()


def test_the_record_is_bounded_and_counts_what_it_drops():
    """What is over and was never delivered is forgotten first; a critical finding still fits."""
    receiver = Receiver()
    receiver.away = True
    receiver.see(queue("old"))
    receiver.see(*[queue(f"q{number}") for number in range(MAX_INCIDENTS + 5)])
    names = {it.key.name for it in receiver.record.all()}
    receiver.see(*[queue(f"q{number}") for number in range(MAX_INCIDENTS)], queue("x", severity=Severity.CRITICAL))

    assert (MAX_INCIDENTS, False) == (len(names), "old" in names)
    assert "x" in {it.key.name for it in receiver.record.all()}
    assert receiver.record.dropped


def test_an_end_that_was_delivered_while_the_finding_returned_starts_again():
    """The receiver believes it is over."""
    receiver = Receiver()
    receiver.see(queue("a"))
    receiver.away = True
    receiver.see()
    due = receiver.record.due(receiver.clock.now())
    receiver.record.observe(Verdicts(findings=(queue("a"),)).of("shop"), {}, receiver.clock.now())
    receiver.record.commit(due, receiver.clock.now())

    assert [("start", "a")] == receiver.look()


def test_a_finding_that_is_muted_while_its_start_is_sent_ends():
    """The receiver may have got the start; if it did not, there is nothing to end."""
    arrives, lost = Receiver(), Receiver()
    mute = {queue("a").key: Triage(muted_until=iso(WALL + 600))}
    for receiver in (arrives, lost):
        receiver.away = True
        receiver.see(queue("a"))
        due = receiver.record.due(receiver.clock.now())
        receiver.record.observe(Verdicts(findings=(queue("a"),)).of("shop"), mute, receiver.clock.now())
        if receiver is arrives:
            receiver.record.commit(due, receiver.clock.now())

    assert ([("resolve", "a")], []) == (arrives.look(), lost.look())
    assert [] == lost.record.all()


def test_the_fingerprint_is_that_of_the_finding():
    """Receivers use it to join messages about one finding."""
    one = IncidentKey("shop", "no-consumer", "queue", "/", "a")
    other = one._replace(vhost="", name="/a")

    assert one.fingerprint == IncidentKey(*one).fingerprint != other.fingerprint
    assert FindingIncident(key=one, began=0.0, severity=Severity.INFO).key.finding == queue("a").key
