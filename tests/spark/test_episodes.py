"""Findings from their beginning to their end, over restarts of the exporter."""

import random

import pyarrow as pa
import pytest

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, Inconclusive, Severity, Subject
from ackscope.tables import EPISODES, FINDING_EVENTS, POLLS_1M
from ackscope.tables.arrow import arrow_schema
from exporter.landing.events import Findings
from tests.spark import golden_episodes
from tests.spark.landing_files import write
from tests.spark.moments import NOON, at

pytestmark = pytest.mark.spark


@pytest.fixture
def episodes(spark):
    """The episodes of events and polls, and of what was known before."""
    from pipeline.transforms.episodes import episodes

    def make(events, polls, known=()):
        frames = [
            spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=arrow_schema(table)))
            for rows, table in ((events, FINDING_EVENTS), (polls, POLLS_1M), (known, EPISODES))
        ]
        return ordered(episodes(*frames).toArrow().to_pylist())

    return make


def ordered(rows):
    """In the order of the key."""
    return sorted(rows, key=lambda row: tuple(row[name] for name in EPISODES.key))


def event(minutes, event, rule="no-consumer", **changes):
    """A finding of a queue."""
    row = dict.fromkeys(FINDING_EVENTS.names) | {"kind": "queue", "vhost": "/", "name": "orders"}
    return row | {"at": at(60 * minutes + 5), "rule": rule, "event": event, "severity": "warning"} | changes


def polls(until, *looks):
    """Readings of queues in every minute before `until`; an exporter began to look in those of `looks`."""
    row = dict.fromkeys(POLLS_1M.names) | {"family": "queues", "reads": 6, "failures": 0, "took_sum": 0.1}
    return [row | {"minute": at(60 * minute), "wholes": int(minute in looks)} for minute in range(until)]


def episode_rows(rows):
    """Beginning, end and whether it lasts, in minutes."""
    minute = {None: None} | {at(60 * number + 5): number for number in range(300)}
    return [(minute[row["began"]], minute[row["ended"]], row["lasts"]) for row in rows]


def test_one_that_ended_and_one_that_lasts(episodes):
    """Each beginning is a separate episode, with its worst severity and last summary."""
    rows = episodes(
        [
            event(1, "began", severity="info", summary="a"),
            event(2, "changed", severity="critical", summary="b"),
            event(3, "changed", severity="warning", summary="c", node="rabbit@one"),
            event(9, "ended", severity="warning"),
            event(20, "began"),
        ],
        polls(60, 0),
    )

    assert [(1, 9, False), (20, None, True)] == episode_rows(rows)
    assert ("critical", "c", "rabbit@one", False) == tuple(
        rows[0][name] for name in ("severity", "summary", "node", "found")
    )


@pytest.mark.parametrize("again", [event(30, "found"), event(38, "began")], ids=["at once", "once it can tell"])
def test_a_restart_does_not_end_what_is_found_again(episodes, again):
    """The exporter forgot, the finding went on."""
    rows = episodes([event(1, "began"), again, event(50, "ended")], polls(60, 0, 30))

    assert [(1, 50, False)] == episode_rows(rows)


def test_what_is_not_found_after_a_restart_is_over(episodes):
    """Nobody saw when; what begins later is another one."""
    rows = episodes([event(1, "began"), event(60, "began")], polls(120, 0, 30))

    assert [(1, None, False), (60, None, True)] == episode_rows(rows)


def test_after_a_restart_it_lasts_until_the_rules_had_time(episodes):
    """A few minutes of readings prove nothing yet."""
    assert [(1, None, True)] == episode_rows(episodes([event(1, "began")], polls(40, 0, 30)))
    assert [(1, None, False)] == episode_rows(episodes([event(1, "began")], polls(50, 0, 30)))


def test_removed_at_one_restart_and_back_at_the_next(episodes):
    """What is found at the second was not there at the first."""
    rows = episodes([event(1, "began"), event(90, "found")], polls(100, 0, 30, 90))

    assert [(1, None, False, False), (90, None, True, True)] == [
        (*short, row["found"]) for short, row in zip(episode_rows(rows), rows, strict=True)
    ]


def test_a_beginning_whose_end_was_lost(episodes):
    """Without a restart, a finding that is open does not begin."""
    assert [(1, None, False), (5, 7, False)] == episode_rows(
        episodes([event(1, "began"), event(5, "began"), event(7, "ended")], polls(60, 0))
    )


def test_an_end_of_which_no_beginning_was_reported(episodes):
    """It began before the first retained event."""
    (row,) = episodes([event(5, "ended")], polls(60, 0))

    assert (at(305), at(305), True, False) == tuple(row[name] for name in ("began", "ended", "found", "lasts"))


def test_nothing_reported_is_no_episode(episodes):
    """Known episodes stay although their events have expired."""
    known = episodes([event(1, "began"), event(2, "ended"), event(3, "began")], polls(60, 0))

    assert [] == episodes([], [])
    assert known == episodes([], polls(60, 0), known)


def lived(dice, minutes=240):
    """Events of findings that come and go while the exporter is restarted; and its polls."""
    rules = {"no-consumer": 0, "slow-consumer": 4, "backlog": 12}
    truth = {(rule, name): [dice.random() < 0.5 for _ in range(minutes // 20)] for rule in rules for name in ("a", "b")}
    truth["no-consumer", "always"] = [True] * (minutes // 20)
    events, looks = [], []
    start = 0
    while start < minutes:
        looks.append(start)
        end = start + dice.choice([25, 60, 90])
        findings = Findings()
        for minute in range(start, min(end, minutes)):
            blind = {rule for rule, settling in rules.items() if minute - start < settling}
            seen = [
                _finding(*key, dice.choice(list(Severity)) if dice.random() < 0.01 else Severity.WARNING)
                for key, states in truth.items()
                if states[minute // 20] and key[0] not in blind
            ]
            verdict = DiagnosisResult(
                cluster="shop",
                at="",
                findings=tuple(seen),
                inconclusive=tuple(Inconclusive(rule=rule, reason="") for rule in blind),
            )
            for block in findings.take(verdict, Instant(wall=NOON + 60 * minute + 5, mono=0.0)):
                events += block.arrow().to_pylist()
        start = end + dice.choice([0, 1, 30])
    return events, polls(minutes, *looks)


def _finding(rule, name, severity):
    return Finding(rule=rule, severity=severity, subject=Subject(kind="queue", name=name, vhost="/"))


def _summary(finding):
    """Stands in for the catalogue, which has no page for these findings without facts."""
    return f"{finding.severity} of {finding.subject.name}"


def test_random_lives_agree_with_plain_python(episodes, monkeypatch):
    """What the exporter really lands, in full; and the same after older events have expired."""
    monkeypatch.setattr("exporter.landing.events.render_summary", _summary)
    events, read = lived(random.Random(11), minutes=480)
    expected = ordered(golden_episodes.episodes(events, read))

    assert len(expected) > 20
    assert expected == episodes(events, read)

    for retained_from, known_until in ((200, 380), (479, 480)):
        known = episodes(
            [row for row in events if row["at"] < at(60 * known_until)],
            [row for row in read if row["minute"] < at(60 * known_until)],
        )
        retained = [row for row in events if row["at"] >= at(60 * retained_from)]

        assert expected == episodes(retained, read, known), (retained_from, known_until)


def test_episodes_of_a_folder(spark, tmp_path):
    """Events of the cluster alone, without those of a clock that was wrong; and on from what was known."""
    from pipeline.analysis.episodes import episodes_of
    from pipeline.storage.landing import Landing
    from pipeline.storage.rollups import Rollups

    landing, rollups, now = Landing(tmp_path / "landing"), Rollups(tmp_path / "rollups"), NOON + 7200.0
    write(landing.root, FINDING_EVENTS, [event(1, "began"), event(10**7, "ended")], "a")
    write(landing.root, FINDING_EVENTS, [event(1, "began")], "b", cluster="other")

    def refreshed():
        with rollups.writer_lock():
            transaction = rollups.transaction("shop")
            transaction.replace_table(EPISODES, episodes_of(spark, landing, rollups, "shop", now))
            transaction.commit()
        return episode_rows(transaction.rows(EPISODES, 0, 10**7).to_pylist())

    first = refreshed()
    for path in landing.root.rglob("a.parquet"):
        path.unlink()
    write(landing.root, FINDING_EVENTS, [event(9, "ended"), event(12, "began")], "c")

    assert [(1, None, True)] == first
    assert [(1, 9, False), (12, None, True)] == refreshed()
