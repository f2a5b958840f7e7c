from dataclasses import replace

from ackscope.clock import Instant
from ackscope.findings import Inconclusive, Severity, Subject
from exporter.landing.events import Findings, Polls
from tests.unit.exporter.made import NOW, WALL, Verdicts, finding, small


def rows(blocks):
    """What a reader of the files sees."""
    return [row for block in blocks for row in block.arrow().to_pylist()]


def test_each_good_reading_is_reported_once():
    """The row has the time of its samples, and their number."""
    polls = Polls()
    first = {row["family"]: row for row in rows(polls.take(small(), {"queues"}))}

    assert {"overview", "nodes", "queues", "channels", "consumers", "connections", "health"} == set(first)
    assert (WALL, True, 2, True) == tuple(
        first["queues"]["at"].timestamp() if name == "at" else first["queues"][name]
        for name in ("at", "success", "objects", "whole")
    )
    assert (None, False, 0.01) == tuple(first["overview"][name] for name in ("objects", "whole", "took"))
    assert [] == polls.take(small())


def test_a_failure_is_reported_with_its_reason_and_the_age_of_what_is_shown():
    """It is landed once, again after a minute, and when the reason changes."""
    polls = Polls()
    polls.take(small())
    later = Instant(wall=WALL + 20, mono=NOW.mono + 20)
    failed = replace(small(), taken=later, queues=replace(small().queues, error="timed out"))
    reported = rows(polls.take(failed))
    again = polls.take(replace(failed, queues=replace(failed.queues)))
    after = Instant(wall=WALL + 80, mono=NOW.mono + 80)
    minute = rows(polls.take(replace(failed, taken=after)))
    other = rows(polls.take(replace(failed, taken=after, queues=replace(failed.queues, error="refused"))))

    assert [("queues", False, 20.0, "timed out", WALL + 20)] == [
        (row["family"], row["success"], row["age"], row["reason"], row["at"].timestamp()) for row in reported
    ]
    assert [] == again
    assert [80.0, "refused"] == [minute[0]["age"], other[0]["reason"]]


def test_a_reading_that_is_not_believed_is_no_good_one():
    """A list that is empty for lack of permission has a time but no value, so it shows nothing about queues."""
    blind = replace(small().queues, value=None, error="the user sees nothing")
    reported = rows(Polls().take(small(queues=blind)))

    assert [False] == [row["success"] for row in reported if row["family"] == "queues"]


NO_CONSUMER = finding()
WORSE = finding(severity=Severity.CRITICAL)
OTHER = finding(
    subject=Subject(kind="node", name="rabbit@one"),
    rule="probe-node-differs",
    facts={"failing": [], "reason": None, "worst": "rtt declare", "worst_seconds": 0.3, "peers_seconds": 0.001},
    evidence=(),
)


def events(findings, *verdicts):
    """(event, rule, severity, severity before) of each row of the last verdict."""
    for verdict in verdicts:
        reported = rows(findings.take(verdict.of("shop"), NOW))
    return [(row["event"], row["rule"], row["severity"], row["severity_before"]) for row in reported]


def test_a_finding_that_was_there_at_the_first_look_did_not_begin_then():
    """The exporter cannot know when it began."""
    assert [("found", "no-consumer", "warning", None)] == events(Findings(), Verdicts((NO_CONSUMER,)))


def test_findings_begin_change_and_end():
    """Each change gives one row; an unchanged finding gives none."""
    findings, calm = Findings(), Verdicts()
    events(findings, calm)

    assert [("began", "no-consumer", "warning", None)] == events(findings, Verdicts((NO_CONSUMER,)))
    assert [] == events(findings, Verdicts((NO_CONSUMER,)))
    assert [
        ("changed", "no-consumer", "critical", "warning"),
        ("began", "probe-node-differs", "warning", None),
    ] == events(findings, Verdicts((WORSE, OTHER)))
    assert [("ended", "no-consumer", "critical", None)] == events(findings, Verdicts((OTHER,)))


def test_a_rule_that_cannot_tell_ends_nothing():
    """Inconclusive is no recovery; the next conclusive result decides."""
    findings = Findings()
    blind = Verdicts(inconclusive=(Inconclusive(rule="no-consumer", reason="hidden_queues", facts={"queues": 1}),))
    events(findings, Verdicts((NO_CONSUMER,)))

    assert [] == events(findings, blind)
    assert [] == events(findings, Verdicts((NO_CONSUMER,)))
    assert [("ended", "no-consumer", "warning", None)] == events(findings, blind, Verdicts())


def test_a_subject_without_vhost_has_a_key_all_the_same():
    """Empty text: a key is never null."""
    (row,) = rows(Findings().take(Verdicts((OTHER,)).of("shop"), NOW))

    assert ("", "node", "rabbit@one") == (row["vhost"], row["kind"], row["name"])


def test_a_loss_that_is_over_has_ended():
    """Diagnosis keeps it as information for some minutes; the history knows its end."""
    over = finding(severity=Severity.INFO, over_since="2026-01-01T00:00:00Z")

    assert [("ended", "no-consumer", "warning", None)] == events(
        Findings(), Verdicts((NO_CONSUMER,)), Verdicts((over,))
    )
