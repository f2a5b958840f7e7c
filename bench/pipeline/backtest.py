"""A backtest over a simulated fleet: rows a second and core, one core and two, and what its proposal is worth.

    python -m bench.pipeline.backtest [--clusters 2] [--queues 24] [--days 3] [--incidents 4] [--json]

The history comes from `bench.pipeline.fleet`, which knows nothing of diagnosis; its planted incidents are what really
happened. Findings of bursts, deployments and busy hours are false.
"""

import argparse
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import SparkSession

from ackscope.findings import Severity
from ackscope.tables import MINUTES
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.fleet import START, Fleet, fleets
from bench.tables import table
from diagnosis.thresholds import Thresholds
from pipeline.backtest.comparison import scores
from pipeline.backtest.job import BacktestPlan, BacktestResult, backtest
from pipeline.backtest.settings import Setting, settings_of
from pipeline.backtest.truth import read_incidents
from pipeline.cli.backtest import replay_proposal
from pipeline.session import spark_session
from pipeline.storage.rollups import Rollups

SHOWS = "thresholds replayed over days with planted incidents: rows a second and core, one core and two, false findings"

_RULE, _VALUES = "queue-overload", "overload_for=300,540"
_CORES = (1, 2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    for name, default in (("clusters", 2), ("queues", 24), ("days", 3), ("incidents", 4), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"default {default}")


def measure(args: argparse.Namespace) -> Document:
    """Generate the fleet, replay it with one core and with two, and score the proposal."""
    folder = Path(tempfile.mkdtemp(prefix="ackscope-bench-"))
    try:
        made = fleets(args.clusters, args.queues, args.days, args.incidents, args.seed)
        for fleet in made:
            progress(f"writing {fleet.days} days of {fleet.queues} queues")
            _write(folder, fleet)
        incidents = folder / "incidents.json"
        incidents.write_bytes(orjson.dumps([_incident(it.as_dict()) for fleet in made for it in fleet.truth()]))
        plan = BacktestPlan(
            None,
            folder / "rollups",
            [fleet.cluster for fleet in made],
            float(START),
            float(START + args.days * 86400),
            (_RULE,),
            Severity.WARNING,
            read_incidents(incidents),
        )
        settings = settings_of([_VALUES], Thresholds())
        runs = []
        for cores in _CORES:
            with spark_session(f"local[{cores}]") as spark:
                run, result = _run(spark, plan, settings, cores)
                runs.append(run)
                if cores == _CORES[-1]:
                    progress("replaying the proposal")
                    proposals, shown = replay_proposal(spark, plan, settings, result)
    finally:
        shutil.rmtree(folder)
    document: Document = {
        "clusters": args.clusters,
        "queues": args.queues,
        "days": args.days,
        "runs": runs,
        "proposals": len(proposals),
        "incidents": sum(len(it.truths) for it in result.histories),
        "settings": _scored(result, shown),
    }
    document["goals"] = [asdict(goal) for goal in goals(document)]
    return document


def goals(document: Document) -> list[Goal]:
    """Return the goals and their values."""
    present, last = document["settings"][0], document["settings"][-1]
    one, two = (run["seconds"] for run in document["runs"])
    false = last["false"] / present["false"] if present["false"] else None
    return [
        Goal("false findings with the proposal over those without", false, 0.5),
        Goal("incidents that the proposal no longer reports", max(0, present["found"] - last["found"]), 0.0),
        Goal("time with two cores over time with one", two / one, 1 / 1.7),
    ]


def _write(folder: Path, fleet: Fleet) -> None:
    rollups = Rollups(folder / "rollups")
    for first_hour, tables in fleet.minutes():
        with rollups.writer_lock():
            transaction = rollups.transaction(fleet.cluster)
            for name, rows in tables.items():
                transaction.replace_hours(MINUTES[name], range(first_hour, first_hour + 24), rows)
            transaction.commit()


def _incident(truth: dict[str, Any]) -> dict[str, Any]:
    return {
        "cluster": truth["cluster"],
        "began": truth["began"],
        "ended": truth["settled"] or None,
        "objects": truth["causes"] + truth["consequences"],
    }


def _run(
    spark: SparkSession, plan: BacktestPlan, settings: list[Setting], cores: int
) -> tuple[dict[str, Any], BacktestResult]:
    # Workers start, and import the rules, before the clock does.
    spark.sparkContext.parallelize(range(cores), cores).map(_warm).collect()
    progress(f"replaying with {cores} cores")
    start = time.monotonic()
    result = backtest(spark, plan, settings)
    seconds = time.monotonic() - start
    busy = sum(it.seconds for it in result.tasks)
    rows, diagnoses = sum(it.rows for it in result.tasks), sum(it.diagnoses for it in result.tasks)
    run = {
        "cores": cores,
        "tasks": len(result.tasks),
        "seconds": seconds,
        "rows": rows,
        "rows_a_core": rows / busy,
        "diagnoses_a_core": diagnoses * len(settings) / busy,
        "reading_share": sum(it.reading_seconds for it in result.tasks) / busy,
    }
    return run, result


def _warm(_: int) -> int:
    from diagnosis.rules import RULES  # noqa: PLC0415  in the worker

    return len(RULES)


def _scored(result: BacktestResult, settings: list[Setting]) -> list[dict[str, Any]]:
    found = scores(result.histories, (_RULE,), Severity.WARNING)
    return [{"setting": it.name, **asdict(score)} for it, score in zip(settings, found, strict=True)]


def lines(document: Document) -> list[str]:
    """Format the document."""
    runs = [
        [
            str(it["cores"]),
            f"{it['seconds']:.0f} s",
            f"{it['rows']:,}",
            f"{it['rows_a_core']:,.0f}",
            f"{it['diagnoses_a_core']:,.0f}",
            f"{it['reading_share']:.0%}",
        ]
        for it in document["runs"]
    ]
    settings = [
        [
            it["setting"].rpartition(".")[2],
            str(it["begins"]),
            str(it["false"]),
            f"{it['false_a_week']:.1f}",
            str(it["found"]),
            str(it["lost"]),
            str(it["again"]),
        ]
        for it in document["settings"]
    ]
    history = (
        f"{document['clusters']} clusters, the first of {document['queues']} queues, {document['days']} days of "
        f"minutes, {document['incidents']} planted incidents, {_RULE}"
    )
    return [
        history,
        "",
        *table(["cores", "time", "rows", "rows/s a core", "diagnoses/s a core", "reading"], runs),
        "",
        *table(["setting", "begins", "false", "a week", "found", "lost", "again"], settings),
        "",
        *(Goal(**it).line() for it in document["goals"]),
    ]


BENCH = Bench(
    "backtest", SHOWS, measure, lines, add_arguments, short=("--clusters", "1", "--days", "2", "--incidents", "3"),
    room="pipeline",
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
