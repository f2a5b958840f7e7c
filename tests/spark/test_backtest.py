"""The backtest over landing files and over minutes, as a Spark job and as a command."""

import json
from contextlib import nullcontext

import pyarrow.parquet as pq
import pytest

from ackscope.__main__ import main
from ackscope.clock import SystemClock
from ackscope.findings import Severity
from diagnosis.thresholds import Thresholds
from pipeline import jobs
from pipeline.backtest import result_file
from pipeline.backtest.episodes import Episode
from pipeline.backtest.job import BacktestPlan, BacktestResult, backtest
from pipeline.backtest.settings import settings_of
from tests.unit.pipeline.live_history import START, live

pytestmark = pytest.mark.spark

MINUTES = 50
RULES = ("no-consumer", "node-down", "memory-alarm")
UNTIL = "2026-03-01T01:00"


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Fifty minutes of a cluster as landing files, rolled up, with the recorded episodes."""
    root = tmp_path_factory.mktemp("backtest")
    for table, rows in live(MINUTES).landed.items():
        place = root / "landing" / table.name / "cluster=shop" / "date=2026-03-01"
        place.mkdir(parents=True)
        # Two files, as if they had landed one after the other.
        half = rows.num_rows // 2
        for name, part in (("a", rows.slice(0, half)), ("b", rows.slice(half))):
            if part.num_rows:
                pq.write_table(part, place / f"{name}.parquet")
    jobs.run(root / "landing", root / "rollups", lambda: nullcontext(spark), SystemClock())
    return root


def _backtest(spark, folder, *, landing: bool) -> BacktestResult:
    plan = BacktestPlan(
        folder / "landing" if landing else None,
        folder / "rollups",
        ("shop",),
        float(START),
        float(START + 3600),
        RULES,
        Severity.INFO,
    )
    return backtest(spark, plan, settings_of([], Thresholds()))


def test_landing_replays_the_recorded_episodes(spark, folder):
    """Each with its beginning and its end, to the microsecond, and no others."""
    result = _backtest(spark, folder, landing=True)
    recorded = {(it.rule, it.kind, it.vhost, it.name, it.began, it.ended) for it in result.recorded["shop"]}

    assert recorded == {(*it.key, it.began, it.ended) for it in result.histories[0].settings[0]}
    assert {it[0] for it in recorded} == set(RULES)


def test_minutes_replay_them_to_the_minute(spark, folder):
    """Where landing rows have expired: a reading a minute; what lasts a minute only may be missed."""
    result = _backtest(spark, folder, landing=False)
    exact = _lasting(_backtest(spark, folder, landing=True))
    coarse = {it.key: it for it in _lasting(result)}

    assert {it.key for it in exact} == set(coarse)
    assert all(-60 <= coarse[it.key].began - it.began <= 180 for it in exact)
    assert all(abs(_end(coarse[it.key]) - _end(it)) <= 120 for it in exact)


def _lasting(result: BacktestResult) -> list[Episode]:
    """The episodes that a reading a minute can show."""
    return [it for it in result.histories[0].settings[0] if _end(it) - it.began > 200]


def _end(episode: Episode) -> float:
    return START + MINUTES * 60.0 if episode.ended is None else episode.ended


def test_command_compares_proposes_and_remembers(spark, folder, monkeypatch, capsys):
    """A table in 80 columns, the proposal as configuration, and the same again from `ask`."""
    monkeypatch.setattr("pipeline.cli.backtest.spark_session", lambda _: nullcontext(spark))
    # The deployment at minute 40 was no incident; the consumer that was gone for ten minutes was.
    incidents = folder / "incidents.yaml"
    incidents.write_text(
        "- began: 2026-03-01T00:12\n  ended: 2026-03-01T00:22\n  objects: [{kind: queue, vhost: /, name: orders.new}]\n"
    )
    words = ["--rollups", str(folder / "rollups"), "--landing", str(folder / "landing")]
    options = ["--rule", "no-consumer", "--set", "early=12,90", "--last", "1h", "--until", UNTIL, "--severity", "info"]
    code = main(["pipeline", "backtest", *words, *options, "--incidents", str(incidents)])
    shown = capsys.readouterr().out
    document = result_file.read(folder / "rollups", "shop")

    assert code == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert [(it["setting"], it["false"], it["lost"]) for it in document["settings"]] == [
        ("present", 1, 0),
        ("early=90", 0, 0),
        ("proposed", 0, 0),
    ]
    assert document["proposals"][0]["values"] == {"": {"early": 90.0}}
    assert document["configuration"] == "diagnosis: {early: 90.0}"

    assert main(["pipeline", "ask", "backtest", *words[:2]]) == 0
    assert capsys.readouterr().out == shown

    assert main(["pipeline", "ask", "backtest", *words[:2], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["asked"]["truth"] == str(incidents)


def test_command_says_what_cannot_be_replayed(folder, capsys):
    """By the needs of the page of the rule, before Spark starts."""
    words = ["--rollups", str(folder / "rollups"), "--rule", "zombie-connection"]

    assert main(["pipeline", "backtest", *words]) == 3
    assert "zombie-connection needs connections" in capsys.readouterr().err


def test_command_says_which_clusters_there_are(folder, capsys):
    """A name or a pattern that matches none is an error, before Spark starts."""
    words = ["--rollups", str(folder / "rollups"), "--rule", "no-consumer", "--clusters", "shop,shpo*"]

    assert main(["pipeline", "backtest", *words]) == 3
    assert "--clusters 'shpo*': no such cluster" in capsys.readouterr().err
