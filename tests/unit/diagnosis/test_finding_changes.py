from ackscope.clock import Instant
from ackscope.findings import Certainty, Inconclusive, Severity, Subject
from diagnosis.finding_changes import ENDED_SECONDS, MAX_ENDED, finding_changes, recently_ended
from tests.unit.exporter.made import NOW, WALL, Verdicts, finding

NO_CONSUMER, ALARM = finding(), finding(rule="memory-alarm", subject=Subject(kind="node", name="rabbit@one"))
HIDDEN = Inconclusive(rule="no-consumer", reason="hidden_queues", facts={"queues": 1})


def later(seconds):
    """The moment this many seconds after the first diagnosis."""
    return Instant(wall=WALL + seconds, mono=NOW.mono + seconds)


def ended(*verdicts, step=5.0):
    """Rule and seconds of what has ended by the last of some diagnoses, `step` seconds apart."""
    opened, known = {}, ()
    for number, verdict in enumerate(verdicts):
        changes = finding_changes(opened, verdict.of("shop"))
        known = recently_ended(known, changes, verdict.of("shop"), later(number * step))
        opened = changes.open
    return [(each.finding.rule, each.at.since(NOW)) for each in known]


def test_what_ended_is_held_with_its_time_the_latest_first():
    """A reader who comes later sees what the alert was about."""
    both, one, calm = Verdicts((NO_CONSUMER, ALARM)), Verdicts((ALARM,)), Verdicts()

    assert [] == ended(both, both)
    assert [("no-consumer", 5.0)] == ended(both, one, one)
    assert [("memory-alarm", 10.0), ("no-consumer", 5.0)] == ended(both, one, calm, calm)


def test_it_is_held_for_an_hour():
    """Then the history has it."""
    calm = [Verdicts()] * 3

    assert [("no-consumer", ENDED_SECONDS / 2)] == ended(Verdicts((NO_CONSUMER,)), *calm, step=ENDED_SECONDS / 2)
    assert [] == ended(Verdicts((NO_CONSUMER,)), *calm, step=ENDED_SECONDS / 2 + 1)


def test_what_came_back_has_not_ended():
    """Its second end counts, once."""
    ill, calm = Verdicts((NO_CONSUMER,)), Verdicts()

    assert [] == ended(ill, calm, ill)
    assert [("no-consumer", 15.0)] == ended(ill, calm, ill, calm)


def test_an_inconclusive_rule_ends_nothing():
    """Its finding ends when the rule judges again and does not find it."""
    ill, unknown, calm = Verdicts((NO_CONSUMER,)), Verdicts(inconclusive=(HIDDEN,)), Verdicts()

    assert [] == ended(ill, unknown, unknown)
    assert [] == ended(ill, unknown, ill)
    assert [("no-consumer", 10.0)] == ended(ill, unknown, calm)


def test_what_another_finding_explains_now_has_not_ended():
    """It is below that finding."""
    cause = finding(rule="memory-alarm", subject=ALARM.subject, consequences=(NO_CONSUMER,))

    assert [] == ended(Verdicts((NO_CONSUMER,)), Verdicts((cause,)))


def test_a_loss_that_is_over_has_ended():
    """Diagnosis holds it as information for some minutes."""
    over = finding(severity=Severity.INFO, over_since="2026-01-01T00:00:00Z")

    assert [("no-consumer", 5.0)] == ended(Verdicts((NO_CONSUMER,)), Verdicts((over,)))


def test_information_and_early_findings_are_no_news():
    """They come and go."""
    noted = finding(severity=Severity.INFO)
    early = finding(certainty=Certainty.EARLY)

    assert [] == ended(Verdicts((noted,)), Verdicts())
    assert [] == ended(Verdicts((early,)), Verdicts())


def test_their_number_is_bounded():
    """The latest ones remain."""
    many = tuple(
        finding(subject=Subject(kind="queue", name=f"q{number}", vhost="/")) for number in range(MAX_ENDED + 1)
    )

    held = ended(Verdicts((*many, ALARM)), Verdicts((*many,)), Verdicts())
    assert MAX_ENDED == len(held)
    assert {("no-consumer", 10.0)} == set(held)
