"""Thirty days of synthetic rollups that end now, compacted, with everything that the dashboard reads.

The last day has all queues of the cluster; earlier days have few, because the dashboard reads no minutes older than a
day. Hourly and daily tables are listed in the manifest but not written, except for the one that the dashboard reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.baselines import HOUR_OF_WEEK
from ackscope.clock import iso
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import BASELINES, BURSTS_1M, CHANGES, DAYS, EPISODES, HOURS, MINUTES, POLLS_1M, Table
from bench.pipeline import minutes, probing
from bench.pipeline.cluster import shape
from bench.pipeline.columns import at, named, ordered
from bench.pipeline.simulation import SimulatedSteps, Simulation

_HOUR = 3600
_OLDER_QUEUES = 50
_NODES = 3
_MOVES_A_DAY = 20
_STREAMS = ("classic", "quorum", "stream")
_MEASURES = ("ready", "unacked", "published", "delivered", "acked", "redelivered")
_ROWS = 10


def queue_names(queues: int) -> list[str]:
    """Return the queue names of the replayed broker."""
    return [f"queue-{number:06d}" for number in range(queues)]


def write(root: Path, cluster: str, queues: int, now: float, days: int = 30) -> int:
    """Write all files below `root`; returns their size in bytes.

    Args:
        root: folder of rollups.
        cluster: name of the cluster.
        queues: number of queues on the last day.
        now: end of the last minute, seconds since 1970.
        days: number of days.
    """
    files_by_table: dict[str, list[DataFile]] = {}
    for table, rows, first, last in _pieces(queues, int(now), days):
        path = Path(table.name) / f"cluster={quote(cluster, safe='')}" / f"{first}-{last}.parquet"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, root / path, compression="zstd")
        files_by_table.setdefault(table.name, []).append(_data_file(str(path), first, last, rows.num_rows))
    for table in (*HOURS.values(), *DAYS.values()):
        if table.name not in files_by_table:
            firsts = range(int(now) // _HOUR - 24 * days, int(now) // _HOUR, 24)
            files_by_table[table.name] = [
                _data_file(f"{table.name}/{first}", first, first + 24, 24) for first in firsts
            ]
    listing = Manifest(cluster, 1, iso(now), {name: tuple(files) for name, files in files_by_table.items()})
    for path, body in (
        (root / manifest.FOLDER / f"{quote(cluster, safe='')}.json", manifest.encode(listing)),
        (root / "_answers" / f"{quote(cluster, safe='')}.json", orjson.dumps(_answers(cluster, now))),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return sum(path.stat().st_size for path in root.rglob("*.parquet"))


def _data_file(path: str, first: int, last: int, rows: int) -> DataFile:
    return DataFile(path, first, last, rows, {str(hour): f"{hour:016x}" for hour in range(first, last)})


def _pieces(queues: int, now: int, days: int) -> Iterator[tuple[Table, pa.Table, int, int]]:
    """Yield all files: table, rows, first and last hour (exclusive)."""
    last_day = now // _HOUR - 23
    if days > 1:
        for stretch in _stretches(_OLDER_QUEUES, (last_day - 24 * (days - 1)) * _HOUR, 1440 * (days - 1), 1440):
            yield from _of_minutes(stretch, _OLDER_QUEUES)
    for stretch in _stretches(queues, last_day * _HOUR, (now - last_day * _HOUR) // 60, 60):
        yield from _of_minutes(stretch, queues)
    dice = np.random.default_rng(3)
    names = queue_names(queues)
    polls = HOURS[POLLS_1M.name]
    for first in range(now // _HOUR - 24 * days, now // _HOUR, 24):
        last, hours = first + 24, [datetime.fromtimestamp((first + number) * _HOUR, UTC) for number in range(24)]
        yield polls, _rows(polls, [_polls(hour) for hour in hours]), first, last
        for table in (CHANGES, EPISODES):
            yield (
                table,
                _rows(table, [_move(table, dice, hours, names) for _ in range(_MOVES_A_DAY)]),
                first,
                first + 24,
            )
    for hour in range(168):
        yield BASELINES, _bands(dice, names, hour, now), hour, hour + 1


def _stretches(queues: int, start: int, steps: int, each: int) -> Iterator[SimulatedSteps]:
    dice = np.random.default_rng(5)
    made = replace(shape(dice, queues, _NODES, steps), names=queue_names(queues), vhosts=["/"] * queues)
    yield from Simulation(made, (), dice, start, steps).stretches(each)


def _of_minutes(stretch: SimulatedSteps, queues: int) -> Iterator[tuple[Table, pa.Table, int, int]]:
    dice = np.random.default_rng(stretch.first)
    made = replace(shape(dice, queues, _NODES, len(stretch)), names=queue_names(queues), vhosts=["/"] * queues)
    tables = minutes.rolled_up(dice, stretch, made) | probing.minutes(dice, stretch, made.node_names)
    first = stretch.first // _HOUR
    last = -(-(stretch.first + len(stretch) * stretch.step) // _HOUR)
    for name, rows in (tables | {BURSTS_1M.name: _bursts(dice, stretch, made.node_names)}).items():
        yield MINUTES[name], rows, first, last


def _bursts(dice: np.random.Generator, stretch: SimulatedSteps, nodes: list[str]) -> pa.Table:
    streams = [(stream, node) for stream in _STREAMS for node in nodes]
    step = np.repeat(np.arange(len(stretch)), len(streams))
    which = np.tile(np.arange(len(streams)), len(stretch))
    bursts = dice.integers(100, 400, len(step))
    stream = named([it for it, _ in streams], which)
    columns = {
        "minute": at(stretch, step),
        "probe": pa.repeat("confirm", len(step)),
        "stream": stream,
        "queue_type": stream,
        "vhost": pa.repeat("ackscope", len(step)),
        "node": named([it for _, it in streams], which),
        "bursts": pa.array(bursts),
        "frames": pa.array(bursts),
        "multiple_frames": pa.array(bursts // 2),
        "messages": pa.array(bursts * 3),
        "messages_max": pa.array(dice.integers(3, 30, len(step))),
        "interval_sum": pa.array(np.full(len(step), 59.0)),
        "interval_count": pa.array(bursts),
        "interval_max": pa.array(dice.uniform(0.2, 0.9, len(step))),
    }
    return ordered(BURSTS_1M, columns)


def _rows(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    return ordered(table, columns)


def _polls(hour: datetime) -> dict[str, Any]:
    zero = {it.name: 0 for it in HOURS[POLLS_1M.name].columns if not it.nullable}
    return {**zero, "hour": hour, "first_minute": hour, "last_minute": hour, "family": "queues", "minutes": 60}


def _move(table: Table, dice: np.random.Generator, hours: list[datetime], names: list[str]) -> dict[str, Any]:
    """Return a change point or an episode of a random queue in one of the hours."""
    when, name = hours[dice.integers(len(hours))], names[dice.integers(len(names))]
    about = {"kind": "queue", "vhost": "/", "name": name}
    if table is CHANGES:
        measure = _MEASURES[dice.integers(len(_MEASURES))]
        return {"at": when, **about, "measure": measure, "before": 10.0, "after": 90.0, "score": 20.0, "minutes": 90}
    episode = {"began": when, "last_told": when, "lasts": False, "found": False, "rule": "stuck-consumer"}
    return {**episode, "ended": hours[-1], "severity": "warning", **about, "summary": f"Nobody acknowledges {name}"}


def _bands(dice: np.random.Generator, names: list[str], hour: int, now: int) -> pa.Table:
    """Return baseline bands of all queues for one hour of the week."""
    rows = len(names) * len(_MEASURES)
    middle = dice.uniform(1, 100, rows)
    columns = {
        "made_at": pa.repeat(pa.scalar(now * 1_000_000, pa.timestamp("us", tz="UTC")), rows),
        "hour_of_week": pa.array(np.full(rows, hour)),
        "kind": pa.repeat("queue", rows),
        "vhost": pa.repeat("/", rows),
        "name": named(names, np.repeat(np.arange(len(names)), len(_MEASURES))),
        "measure": named(list(_MEASURES), np.tile(np.arange(len(_MEASURES)), len(names))),
        "scope": pa.repeat(HOUR_OF_WEEK, rows),
        "values": pa.array(np.full(rows, 4)),
        "low": pa.array(middle * 0.5),
        "middle": pa.array(middle),
        "high": pa.array(middle * 1.5),
    }
    return ordered(BASELINES, columns)


def _answers(cluster: str, now: float) -> dict[str, Any]:
    """Return the report document, with as many rows per report as the dashboard shows."""
    whole = {"asked_from": iso(now - 14 * 86400), "asked_to": iso(now), "first": iso(now - 14 * 86400)}
    data = {**whole, "last": iso(now), "minutes": 14 * 1440, "gap_minutes": 0}
    names = queue_names(_ROWS)

    def answer(question: str, rows: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
        base = {"question": question, "asked": {}, "data": data, "told": ["made up"] * len(rows), "rows": rows}
        return {**base, "because": None, "more": {}, **values}

    worst = [{"vhost": "/", "queue": name, "value": 150, "beside": 600, "share": 0.25} for name in names]
    slow = {"value": 0.2, "beside": 0.003, "max": 2.5, "messages": 9000, "share": 1.0}
    budget = {"messages": 10**6, "bad": 90, "good": 0.9999, "good_at_most": 0.9999, "budget_left": 0.9}
    burn = {"burn": {"1h": 0.1, "6h": 0.1, "3d": 0.1}, "gone_in_seconds": None}
    week = {"unit": "rate", "this_week": 20.0, "week_before": 10.0, "change": 1.0, "hours": 168}
    again = {"rule": "stuck-consumer", "severity": "warning", "kind": "queue", "vhost": "/", "times": 9, "there": "no",
             "first": whole["first"], "began": iso(now - 9000), "began_before": False, "ended": iso(now),
             "median_seconds": 1800.0, "longest_seconds": 3600.0, "typical": "03:00 to 06:00 UTC (9 of 9)"}  # fmt: skip
    return {
        "version": 1,
        "cluster": cluster,
        "made_at": iso(now),
        "worst": {
            **{by: answer("worst", worst) for by in ("redelivered", "ceiling", "backlog")},
            "confirm": answer("worst", [{"stream": name, **slow} for name in _STREAMS]),
        },
        "weeks": answer(
            "weeks",
            [{"measure": name, **week} for name in ("published", "delivered", "acked")],
            more={"queues": [{"vhost": "/", "queue": it, "published": 9, "published_before": 3} for it in names]},
        ),
        "capacity": answer(
            "capacity",
            [{"what": "disk", "verdict": "not yet", "earliest": None, "name": name, "kind": "queue"} for name in names],
        ),
        "slo": answer(
            "slo",
            [{"stream": name, **budget, **burn} for name in ("all", *_STREAMS)],
            asked={"under_seconds": 0.1, "target": 0.999},
        ),
        "recurrences": {
            "from": whole["first"],
            "data_until": iso(now),
            "rows": [{"name": name, "told": "made up", **again} for name in names],
            "all": 40,
        },
    }
