"""Simulated history with planted incidents: found to the minute, named as the cause, without false changes?

    python -m bench.pipeline.incidents [--seeds 1,2,3] [--queues 100] [--days 30] [--incidents 12] [--json]

The history comes from `bench.pipeline.fleet`, which does not depend on how changes are detected; it goes through the
product's own code from tables of minutes on. Findings are not used. Thresholds were tuned on other seeds than those
shown.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.ranking import ChangePoint, ObjectKey, rank_changes
from ackscope.tables import MINUTES
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.cluster import ClusterShape
from bench.pipeline.fleet import Fleet
from bench.pipeline.incident_plan import Incident
from bench.pipeline.minutes import channel_names
from bench.tables import quantile, table
from pipeline.analysis import analysis_state
from pipeline.analysis.refresh import shifts as shifts_of
from pipeline.analysis.report_filter import select_reportable
from pipeline.analysis.shifts import FAST, SLOW
from pipeline.session import spark_session
from pipeline.storage.rollups import Rollups

SHOWS = "planted incidents in a month of simulated history: found to the minute, named first, and nothing else"

# The cause should be among this many objects.
FIRST = 3

# Seconds from the beginning of an incident until somebody notices it and runs the query.
NOTICED = 15 * 60.0

# Minutes from the beginning of an incident to further queries, with the data known by then.
ASKED = (15, 30, 60)

AROUND = 3600.0
# Seconds by which a change may differ from the truth.
_NEAR = 120.0

# Seconds around a beginning in which a change of the cause is attributed to it.
_SEARCHED = 1800.0

_SETTLING = 900.0
_WEEK = 7 * 86400.0
# Seconds within which all changes of one object count as one.
_ONE = 900.0

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedIncident:
    """The result of one incident.

    Attributes:
        off: seconds from its beginning to the nearest change of its cause; None without one.
        place: rank of its cause, from 1; None if it is not ranked.
        later_places: the same for queries after `ASKED` minutes.
        slope: it grows gradually.
    """

    seed: int
    kind: str
    began: str
    off: float | None
    place: int | None
    later_places: tuple[int | None, ...]
    slope: bool


def measure(args: argparse.Namespace) -> Document:
    """Generate and evaluate one history of one cluster per seed."""
    runs = []
    with spark_session() as spark:
        for seed in args.seeds:
            progress(f"seed {seed}")
            folder = Path(tempfile.mkdtemp(prefix="ackscope-bench-"))
            try:
                runs.append(_run(spark, folder, Fleet("shop", seed, args.queues, args.days, args.incidents)))
            finally:
                shutil.rmtree(folder)
    return {
        "queues": args.queues,
        "days": args.days,
        "runs": runs,
        "goals": [asdict(goal) for goal in goals(runs, args.queues, args.days)],
    }


def goals(runs: Sequence[Mapping[str, Any]], queues: int, days: float) -> list[Goal]:
    """Return the goals and their values."""
    judged = [it for run in runs for it in run["incidents"]]
    offs = [abs(it["off"]) for it in judged if it["off"] is not None]
    missed = sum(it["place"] is None or it["place"] > FIRST for it in judged)
    weeks = len(runs) * days / 7 * queues / 100
    late = sum(it["off"] is None or abs(it["off"]) > _NEAR for it in judged)
    return [
        Goal(f"of 12 causes, not among the first {FIRST}", 12 * missed / max(len(judged), 1), 1.0),
        Goal("of 12 incidents, missed or more than 2 minutes off", 12 * late / max(len(judged), 1), 1.0),
        Goal("seconds between a change and its truth, median", statistics.median(offs) if offs else None, _NEAR),
        Goal("false changes a week and 100 queues", sum(run["false"] for run in runs) / weeks, 1.0),
    ]


def _run(spark: SparkSession, folder: Path, fleet: Fleet) -> dict[str, Any]:
    rollups = Rollups(folder)
    minutes = 0
    for first_hour, tables in fleet.minutes():
        with rollups.writer_lock():
            transaction = rollups.transaction(fleet.cluster)
            for name, rows in tables.items():
                transaction.replace_hours(MINUTES[name], range(first_hour, first_hour + 24), rows)
                minutes += rows.num_rows
            transaction.commit()
    start = time.monotonic()
    shifts_of(spark, rollups, fleet.cluster, float(fleet.start + fleet.total * 60))
    ended = time.monotonic()
    candidates = analysis_state.read(folder, fleet.cluster).candidates
    shifts, truth, hosts = reported(candidates), fleet.truth(), hosts_of(fleet.shape)
    wrong = [it for it in shifts if not any(explains(incident, it, hosts) for incident in truth)]
    return {
        "seed": fleet.seed,
        "rows": minutes,
        "seconds": ended - start,
        "incidents": [asdict(_judged(fleet.seed, it, shifts, candidates)) for it in truth],
        "changes": len(shifts),
        "false": len(objects(wrong)),
        "false_rows": len(wrong),
        "false_of": dict(Counter(f"{it.kind} {it.measure}" for it in wrong).most_common()),
        "false_changes": [asdict(it) for it in wrong],
    }


def reported(candidates: pa.Table, known: float = float("inf")) -> list[ChangePoint]:
    """Return the reported shifts; with `known`, only those known at that time."""
    seen = np.where(candidates["soon"].to_numpy(zero_copy_only=False), FAST.minutes_until_sure, SLOW.minutes_until_sure)
    until = candidates["at"].cast(pa.int64()).to_numpy() / 1e6 + 60.0 * seen
    return [ChangePoint.of(row) for row in select_reportable(candidates.filter(pa.array(until <= known))).to_pylist()]


def _judged(seed: int, incident: Incident, shifts: Sequence[ChangePoint], candidates: pa.Table) -> JudgedIncident:
    began = _seconds(incident.began)
    causes = {(it.kind, it.vhost, it.name) for it in incident.causes}
    offs = [it.at - began for it in shifts if it.subject in causes and abs(it.at - began) <= _SEARCHED]
    later_places = tuple(_place(causes, reported(candidates, began + 60.0 * it), began + 60.0 * it) for it in ASKED)
    place, off = _place(causes, shifts, began + NOTICED), min(offs, key=abs, default=None)
    return JudgedIncident(seed, incident.kind, incident.began, off, place, later_places, incident.slope)


def _place(causes: Collection[ObjectKey], shifts: Sequence[ChangePoint], moment: float) -> int | None:
    """Return the best rank of a cause among the changes around a moment."""
    moved = enumerate(rank_changes(shifts, (), moment, AROUND), start=1)
    return next((number for number, it in moved if (it.kind, it.vhost, it.name) in causes), None)


def hosts_of(shape: ClusterShape) -> dict[str, str]:
    """Return the queue of each client, by the prefix of its channel names."""
    every = np.arange(len(shape))
    return {
        channel.partition(":")[0]: queue
        for channel, queue in zip(channel_names(every, every * 0), shape.names, strict=True)
    }


def explains(incident: Incident, shift: ChangePoint, hosts: Mapping[str, str]) -> bool:
    """Return whether an incident explains a shift: from its beginning until its backlog is drained."""
    end = _seconds(incident.settled) if incident.settled else float("inf")
    if not _seconds(incident.began) - _NEAR <= shift.at <= end + _SETTLING:
        return False
    if incident.everywhere:
        return True
    touched = {(it.kind, it.vhost, it.name) for it in (*incident.causes, *incident.consequences)}
    queues = {name for kind, _, name in touched if kind == "queue"}
    of_queue = hosts.get(shift.name.partition(":")[0]) if shift.kind == "channel" else shift.name.partition("/")[0]
    return shift.subject in touched or (shift.kind in {"channel", "consumer"} and of_queue in queues)


def objects(shifts: Sequence[ChangePoint]) -> list[ChangePoint]:
    """Return the first of close shifts of each object; a queue with its channels and consumers is one object."""
    last: dict[ObjectKey, float] = {}
    first = []
    for it in sorted(shifts, key=lambda it: it.at):
        if it.at - last.get(it.parent, -_ONE * 2) > _ONE:
            first.append(it)
        last[it.parent] = it.at
    return first


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def lines(document: Document) -> list[str]:
    """The tables in 80 columns."""
    legend = f"first {FIRST}: its cause is among them once all is known; N min: when asked so soon after it began"
    return [
        *_incidents(document),
        legend,
        "",
        *_runs(document),
        "",
        *(Goal(**it).line() for it in document["goals"]),
    ]


def _incidents(document: Document) -> list[str]:
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for run in document["runs"]:
        for it in run["incidents"]:
            kinds.setdefault(it["kind"], []).append(it)
    return table(
        ["incident", "planted", "found", "off by, s", f"first {FIRST}", *(f"{it} min" for it in ASKED)],
        [list(_kind(kind, found)) for kind, found in sorted(kinds.items())],
    )


def _kind(kind: str, found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    offs = [abs(it["off"]) for it in found if it["off"] is not None]
    yield from (kind, str(len(found)), str(len(offs)))
    yield f"{quantile(offs, 0.5):.0f}, {max(offs):.0f}" if offs else "-"
    for places in ([it["place"] for it in found], *zip(*(it["later_places"] for it in found), strict=True)):
        yield str(sum(it is not None and it <= FIRST for it in places))


def _runs(document: Document) -> list[str]:
    weeks = document["days"] / 7 * document["queues"] / 100
    return table(
        ["seed", "minute rows", "changes", "false", "a week", "its rows", "seconds"],
        [
            [
                str(run["seed"]),
                f"{run['rows']:,}",
                str(run["changes"]),
                str(run["false"]),
                f"{run['false'] / weeks:.2f}",
                str(run["false_rows"]),
                f"{run['seconds']:.0f}",
            ]
            for run in document["runs"]
        ],
    )


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid list {text!r}; use 1,2,3") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--seeds", type=_seeds, default=[1, 2, 3], metavar="N,N", help="(default: 1,2,3)")
    parser.add_argument("--queues", type=int, default=100, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--days", type=int, default=30, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--incidents", type=int, default=12, metavar="N", help="(default: %(default)s)")


BENCH = Bench("incidents", SHOWS, measure, lines, add_arguments, short=("--seeds", "1"), room="pipeline")

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
