"""Questions that need no Spark, and the command line of all."""

import json
from pathlib import Path

import pytest

from ackscope.__main__ import main
from ackscope.clock import SystemClock
from ackscope.tables import BASELINES, CHANGES, EPISODES, HOURS, POLLS_1M
from pipeline.answers.changed import changed
from pipeline.answers.finding import finding
from tests.spark.answer_rollups import HOUR, NOW, at, put, row

POLLS = HOURS[POLLS_1M.name]


def moved(hours: float, name: str, measure: str, before: float, after: float, **values) -> dict:
    """A queue that moved so many hours before now."""
    kind = {"kind": "queue", "vhost": "/", "score": 20.0, "minutes": 90}
    return row(CHANGES, at=at(hours), name=name, measure=measure, before=before, after=after, **{**kind, **values})


def episode(began: float, ended: float | None, name: str = "orders", rule: str = "no-consumer", **values) -> dict:
    """A finding about a queue, from so many hours before now until so many."""
    times = {"began": at(began), "ended": None if ended is None else at(ended), "last_told": at(began)}
    return row(EPISODES, **times, rule=rule, severity="critical", kind="queue", vhost="/", name=name, **values)


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A consumer that stopped, a queue that grew, another that starved, and a finding; readings of two days."""
    put(tmp_path, POLLS, [row(POLLS, hour=at(it), family="queues", reads=60) for it in range(1, 49) if it != 6])
    put(
        tmp_path,
        CHANGES,
        [
            moved(3.9, "invoices", "published", 40.0, 0.0, score=90.0),
            moved(4, "orders", "acked", 120.0, 0.0, score=8.0),
            moved(3.95, "orders", "ready", 3.0, 9_000.0),
            moved(30, "other", "ready", 3.0, 9.0),
            moved(3.93, "10.0.0.7:4001", "unacked", 3.0, 50.0, kind="channel", queue="orders"),
        ],
    )
    put(tmp_path, EPISODES, [episode(3.97, None), episode(30, 29.5), episode(60, 58)])
    return tmp_path


def test_what_changed_begins_with_the_cause(story: Path) -> None:
    """In sentences with before, after, unit and minute; with data and its gaps."""
    answer = changed(story, "shop", NOW - 4 * HOUR, 3 * HOUR, NOW)

    assert ["orders", "invoices"] == [it["name"] for it in answer.rows]
    assert ["10.0.0.7:4001"] == [it["name"] for it in answer.rows[0]["parts"]]
    assert (
        "2026-03-15 20:00 UTC: queue 'orders' in vhost '/': ack rate fell from 120/s to 0/s; "
        "messages ready rose from 3 to 9,000 at 20:03; finding no-consumer (critical) at 20:01; "
        "its channel '10.0.0.7:4001': messages unacked rose from 3 to 50 at 20:04" == answer.sentences[0]
    )
    assert (
        "2026-03-15 20:06 UTC, 6 min after the first: queue 'invoices' in vhost '/': publish rate fell from 40/s to 0/s"
        == answer.sentences[1]
    )
    assert (("2026-03-15T18:00:00Z", "2026-03-15T19:00:00Z"),) == answer.data.gaps


def test_a_quiet_time_says_so(story: Path) -> None:
    """Somebody looked, and nothing moved."""
    answer = changed(story, "shop", NOW - 12 * HOUR, HOUR, NOW)

    assert answer.because is None
    assert "nothing changed" in answer.sentences[0]


def test_a_time_without_data_is_not_called_quiet(story: Path) -> None:
    """Nobody looked."""
    assert "no data for this time range" in changed(story, "shop", NOW - 400 * HOUR, HOUR, NOW).because


def test_changes_that_were_never_looked_for_are_not_called_none(tmp_path: Path) -> None:
    """It says what looks for them; where baselines were made, it was looked for."""
    put(tmp_path, POLLS, [row(POLLS, hour=at(it), family="queues") for it in range(1, 5)])

    assert "`ackscope pipeline analyse`" in changed(tmp_path, "shop", NOW - HOUR, HOUR, NOW).because
    put(tmp_path, BASELINES, [row(BASELINES, made_at=at(1), scope="not-yet", kind="queue", name="q", measure="ready")])
    assert changed(tmp_path, "shop", NOW - HOUR, HOUR, NOW).because is None


def test_a_finding_that_is_there_and_came_before(story: Path) -> None:
    """Since when, how often, how long as a rule."""
    answer = finding(story, "shop", "no-consumer", None, NOW)

    assert (
        "no-consumer of queue 'orders' in vhost '/': active since 2026-03-15 20:01 UTC (3 h 58 min); "
        "3 times since 2026-03-13, half of them longer than 75 min" == answer.sentences[0]
    )
    assert "yes" == answer.rows[0]["there"]


def test_one_without_newer_data_is_not_called_there(story: Path) -> None:
    """The exporter may have stopped."""
    answer = finding(story, "shop", "no-consumer", "orders", NOW + 3 * HOUR)

    assert "cannot tell" == answer.rows[0]["there"]
    assert "unknown whether it is active now" in answer.sentences[0]


def test_one_that_ended_shows_its_last_time(tmp_path: Path) -> None:
    """One that was there at the first look began then or before."""
    put(tmp_path, EPISODES, [episode(30, 28, found=True)])
    answer = finding(tmp_path, "shop", "no-consumer", None, NOW)

    assert "not active; last from 2026-03-14 18:00 UTC or before to 20:00 (2 h); once" in answer.sentences[0]


@pytest.mark.parametrize(
    ("rule", "name", "because"),
    [
        ("no-consumr", None, "no finding 'no-consumr' in the history, did you mean 'no-consumer'?"),
        ("no-consumer", "order", "no finding no-consumer about 'order' in the history, did you mean 'orders'?"),
    ],
)
def test_an_unknown_finding_names_the_nearest(story: Path, rule: str, name: str | None, because: str) -> None:
    """It is an answer, not an error: it never happened."""
    assert because == finding(story, "shop", rule, name, NOW).because


def test_the_command_prints_sentences_and_json(story: Path, capsys) -> None:
    """The same answer for people and for programs; both say from when to when there was data."""
    words = ["pipeline", "ask", "changed", "--rollups", str(story), "--at", "2026-03-15T20:00", "--around", "90m"]

    assert 0 == main(words)
    text = capsys.readouterr().out
    assert 80 >= max(len(line) for line in text.splitlines())
    assert " 1. 2026-03-15 20:00 UTC: queue 'orders' in vhost '/': ack rate fell" in text
    assert "data: 2026-03-15 19:00 to 2026-03-15 22:00 UTC" in " ".join(text.split())
    assert 0 == main([*words, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert ("shop", "changed", "orders") == (document["cluster"], document["question"], document["rows"][0]["name"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["changed", "--at", "soon"], "invalid --at 'soon'; use 2026-03-01T12:04 (UTC), 12:04, '30m ago' or now"),
        (["changed", "--at", "2999-01-01"], "is in the future"),
        (["changed", "--at", "now", "--cluster", "shp"], "has no rollups in"),
        (["changed", "--at", "now", "--cluster", "shp"], "did you mean 'shop'?; there are: shop"),
        (["worst", "--by", "redelivered", "--until", "x"], "invalid --until 'x'"),
        (["capacity", "--backlog", "0"], "invalid --backlog 0"),
        (["changed", "--at", "now", "--master", "loca"], "--master 'loca' is not a Spark master"),
    ],
)
def test_bad_input_is_one_line(story: Path, capsys, words: list[str], message: str) -> None:
    """What, where, what to do instead; exit code 3; before any Java starts."""
    assert 3 == main(["pipeline", "ask", *words, "--rollups", str(story)])
    error = capsys.readouterr().err
    assert message in error
    assert 1 == error.count("\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slo", "--under", "0s"], "invalid duration '0s'; use 100ms, 1h or 7d"),
        (["slo", "--under", "1s", "--target", "100"], "invalid percentage '100'; use a number above 0 and below 100"),
        (["worst", "--by", "size"], "invalid choice: 'size'"),
        (["whatever"], "invalid choice: 'whatever'"),
        ([], "the following arguments are required: QUESTION"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, capsys, words: list[str], message: str) -> None:
    """As of every command."""
    with pytest.raises(SystemExit) as end:
        main(["pipeline", "ask", *words, *(["--rollups", str(tmp_path)] if words else [])])
    error = capsys.readouterr().err

    assert 3 == end.value.code
    assert message in error
    assert 1 == error.count("\n")


def test_without_rollups_it_says_how_to_get_them(tmp_path: Path, capsys) -> None:
    """With the command and the folder."""
    assert 3 == main(["pipeline", "ask", "weeks", "--rollups", str(tmp_path / "none")])
    assert "no rollups here; run `ackscope pipeline run --landing DIR --rollups" in capsys.readouterr().err


def test_several_clusters_have_to_be_chosen(story: Path, capsys) -> None:
    """All are named."""
    put(story, POLLS, [row(POLLS, hour=at(1), family="queues")], "a b")

    assert 3 == main(["pipeline", "ask", "weeks", "--rollups", str(story)])
    assert "several clusters, choose one with --cluster: a b, shop" in capsys.readouterr().err


def test_a_damaged_file_is_one_line(story: Path, capsys) -> None:
    """It names the file."""
    broken = next((story / "changes").rglob("*.parquet"))
    broken.write_bytes(b"not parquet")
    at_noon = ["--at", "2026-03-15T20:00"]

    assert 3 == main(["pipeline", "ask", "changed", "--rollups", str(story), *at_noon, "--around", "3d"])
    error = capsys.readouterr().err
    assert "a rollup file cannot be read" in error
    assert 1 == error.count("\n")


def test_the_clock_of_these_tests_lies_in_the_past() -> None:
    """Or moments that are in the future of the machine would be refused."""
    assert NOW < SystemClock().now().wall
