"""Tests that a replay of what landed gives the verdicts of the live diagnosis."""

from itertools import pairwise

import pytest

from ackscope.tables import FINDING_EVENTS
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds
from pipeline.backtest.episodes import Episode, EpisodeTracker, joined
from pipeline.backtest.recorded import FieldReads
from pipeline.backtest.replay import Replay, replay
from pipeline.backtest.rows import of_landing
from pipeline.backtest.settings import related_rules, replayable
from pipeline.backtest.snapshots import RecordedSnapshots
from tests.unit.pipeline.live_history import START, LiveHistory, live

MINUTES = 50
ALL = tuple(rule.name for rule in RULES if replayable(rule.name))


@pytest.fixture(scope="module")
def history() -> LiveHistory:
    """Fifty minutes with a fault of every kind."""
    return live(MINUTES)


def _replayed(history: LiveHistory, rules=ALL, start: float = 0.0, end: float = 9e9, since: float = 0.0) -> Replay:
    reads = FieldReads()
    related = related_rules(rules)
    return replay(
        "shop",
        (it for it in RecordedSnapshots("shop", of_landing(history.landed), reads) if since <= it.taken.wall < end),
        [Thresholds()],
        [rule for rule in RULES if rule.name in rules],
        [rule for rule in RULES if rule.name in related],
        reads,
        start,
    )


def _reported(history: LiveHistory) -> list[Episode]:
    """The episodes of the live verdicts."""
    tracker = EpisodeTracker(ALL)
    for at, verdict in history.verdicts:
        tracker.take(verdict, at)
    return tracker.episodes()


def test_replay_of_landing_equals_the_live_verdicts(history):
    """Every begin, end and severity is that of the live diagnosis, to the microsecond."""
    expected = _reported(history)

    assert expected == _replayed(history).episodes[0]
    assert {"node-down", "no-consumer", "memory-alarm", "stuck-consumer", "queue-overload"} <= {
        it.rule for it in expected
    }


def test_live_episodes_are_those_that_land_as_events(history):
    """An episode begins and ends with the events that the exporter lands."""
    events = history.landed[FINDING_EVENTS].to_pylist()
    landed = sorted((row["at"].timestamp(), row["rule"], row["name"]) for row in events if row["event"] == "began")

    assert sorted((it.began, it.rule, it.key[3]) for it in _reported(history)) == landed


@pytest.mark.parametrize(
    "rule", sorted({"no-consumer", "stuck-consumer", "queue-overload", "unacked-grows", "node-down"})
)
def test_one_rule_alone_is_judged_as_among_all(history, rule):
    """Others are run only where it has a finding, and the result is the same as if they always were."""
    expected = [it for it in _reported(history) if it.rule == rule]

    assert expected == _replayed(history, (rule,)).episodes[0]


def test_unrecorded_reads_are_reported(history):
    """What a rule read and the history lacks is known after the replay, and what is recorded is not in it."""
    reads = FieldReads()
    snapshots = RecordedSnapshots("shop", of_landing(history.landed), reads)
    rules = [rule for rule in RULES if rule.name in {"no-consumer", "node-draining"}]
    replay("shop", snapshots, [Thresholds()], rules, rules, reads)

    assert {"queues.arguments", "queues.exclusive", "connections"} <= reads.found["no-consumer"]
    assert not {"queues.messages_ready", "queues.message_stats.publish"} & reads.found["no-consumer"]
    assert "node-draining" not in reads.found


def test_parts_of_a_history_join_to_the_whole(history):
    """A finding that lasts over the end of a part is one episode."""
    rules = ("no-consumer", "queue-overload", "node-down")
    whole = _replayed(history, rules).episodes[0]
    cuts = [START, START + 16 * 60, START + 28 * 60, START + MINUTES * 60]
    parts = []
    for start, end in pairwise(cuts):
        part = _replayed(history, rules, start=start, end=end, since=start - 1800)
        parts.append((float(start), float(end), part.episodes[0]))

    assert whole == joined(parts)
