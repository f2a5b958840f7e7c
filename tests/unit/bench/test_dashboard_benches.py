"""The benchmarks of the page as commands, their tables, and the history that they write."""

import argparse
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from ackscope import manifest
from ackscope.tables import MINUTES
from bench.dashboard import history, management, speed
from bench.dashboard.__main__ import BENCHES
from bench.tables import WIDTH
from dashboard.data import history_answers, rollups

NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_the_short_form_is_one_that_the_command_takes(bench):
    """The benchmark knows the options that `make bench-dashboard` passes."""
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)

    assert parser.parse_args(list(bench.short))
    assert bench.room == "dashboard"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return two days of history."""
    root = tmp_path_factory.mktemp("rollups")
    history.write(root, "bench", 3, NOW.timestamp(), days=2)
    return root


def test_the_history_is_one_that_the_page_reads(written):
    """Every table of minutes that the page asks for has rows up to the end, and moves and answers are there."""
    reported = rollups.read(written, "bench", NOW - timedelta(hours=1), NOW)
    moved = history_answers.changes(written, "bench", NOW - timedelta(days=1), NOW)

    assert NOW - timedelta(minutes=1) == rollups.last_minute(written, "bench")
    assert reported.problem is None
    for frame in (reported.latency, reported.outcomes, reported.bursts, reported.depth, reported.redelivered):
        assert len(frame)
    assert moved.problem is None
    assert moved.analysed
    assert moved.shifts
    assert history_answers.answers(written, "bench").document["slo"]["rows"]


def test_a_queue_has_what_is_usual(written):
    """The queues carry the names of the replayed broker."""
    banded = history_answers.queue_bands(written, "bench", "/", "queue-000000", NOW - timedelta(hours=1), NOW)

    assert banded.problem is None
    assert {"published", "ready"} <= set(banded.bands["measure"])
    assert len(banded.minutes)


def test_the_files_of_a_table_do_not_overlap(written):
    """As from the pipeline, each hour is in one file."""
    known = manifest.read(written, "bench")
    for name in set(MINUTES) & set(known.tables):
        files = known.files_for(name)

        assert all(left.end <= right.start for left, right in pairwise(files))


def test_what_misses_its_goal_says_so():
    """The slowest page of the reruns is judged; missing numbers meet no goal."""
    text = speed.lines(_seen(paint=4.0, slowest=0.31))

    assert any(line.startswith("NOT met: first useful paint") for line in text)
    assert any("NOT met" in line and "the page queues, one queue" in line for line in text)
    assert any(line.startswith("met: CPU seconds of a refresh") for line in text)
    assert all(len(line) <= WIDTH for line in text if "  " in line)


@pytest.mark.parametrize("run", [35.0, None], ids=["later than the refresh", "not once"])
def test_viewers_that_had_to_wait_tell_nothing(run):
    """Viewers served more slowly than the refresh interval load the exporter less, so their numbers do not count."""
    seen = _seen(paint=1.2, slowest=0.1)
    seen["watched"] = {**seen["watched"], "many": {**seen["watched"]["many"], "run": run}}

    assert [True, True, True, None, None] == [goal.met for goal in speed.goals(seen)]


def test_the_other_page_is_named_beside_ours():
    """Both are shown with time and bytes, and their ratio."""
    ours = {"listed": 2.0, "sorted": 2.0, "bytes": 4e6, "requests": 30}
    theirs = {"listed": 1.5, "sorted": 4.0, "bytes": 8e6, "requests": 60}
    seen = {"broker": "4.3.6", "queues": 10_000, "times": 3, "middle": {"ackscope": ours, "management": theirs}}
    text = management.lines(seen)

    assert any("0.50 times as long" in line and "0.50 times the bytes" in line for line in text)


def _seen(paint, slowest):
    watched = {"cpu": 0.1, "asked": 1.0, "scrapes": 0.02, "exporter": 0.2, "run": 0.05}
    document = {
        "broker": "4.3.6",
        "queues": 10_000,
        "findings": 101,
        "last_findings": 102,
        "days": 30,
        "rollups": 4.4e8,
        "seconds": 45,
        "viewers": 20,
        "paint": {
            "seconds": {"now": paint, "empty": 1.0},
            "all": {"now": [1], "empty": [1]},
            "bytes": {"now": 1, "empty": 1},
        },
        "nothing": {"page": "now", "query": "", "cpu": 0.01, "most": 0.02, "bytes": 2000},
        "reruns": [
            {"page": "now", "query": "", "cpu": 0.1, "most": 0.2, "bytes": 10_000},
            {"page": "queues", "query": "queue=a", "cpu": slowest, "most": slowest, "bytes": 10_000},
        ],
        "refresh": {"every": 5.0, "cpu": 0.05, "most": 0.1, "bytes": 90_000},
        "watched": {"one": watched, "many": watched, "peak": 4e8, "rss": 3e8},
    }
    return document | {"goals": [goal.as_dict() for goal in speed.goals(document)]}
