"""Synthetic pipeline output for the history page: change points, episodes, bands and reports."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.baselines import HOUR_OF_WEEK, NOT_YET, hour_of_week
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import BASELINES, CHANGES, EPISODES, HOURS, POLLS_1M, QUEUES_1M, Kind, Table
from ackscope.tables.arrow import arrow_schema
from tests.dashboard import rollup_files
from tests.dashboard.rollup_files import Row, queue_row, this_minute

POLLS = HOURS[POLLS_1M.name]
EMPTY = {Kind.STRING: "", Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False}


def row(table: Table, **values: Any) -> Row:
    """A table row of zeros and nulls, except for these values."""
    return {it.name: None if it.nullable else EMPTY.get(it.kind) for it in table.columns} | values


def put(root: Path, table: Table, rows: list[Row], cluster: str = "shop") -> None:
    """Write these rows as the only file of a table."""
    weekly = table.name == BASELINES.name
    hours = [it["hour_of_week"] if weekly else int(it[table.time].timestamp() // 3600) for it in rows]
    before = manifest.read(root, cluster)
    path = (
        Path(table.name) / f"cluster={quote(cluster, safe='')}" / "date=2026-01-01" / f"day.{uuid4().hex[:16]}.parquet"
    )
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), root / path)
    tables = {**before.tables, table.name: (DataFile(str(path), min(hours), max(hours) + 1, len(rows)),)}
    place = manifest.manifest_path(root, cluster)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(manifest.encode(Manifest(cluster, before.number + 1, tables=tables)))


def moved(back: float, name: str, measure: str, before: float, after: float, **values: Any) -> Row:
    """A change point of a queue so many minutes ago."""
    at = this_minute() - timedelta(minutes=back)
    kind = {"kind": "queue", "vhost": "/", "score": 20.0, "minutes": 90}
    return row(CHANGES, at=at, name=name, measure=measure, before=before, after=after, **{**kind, **values})


def episode(back: float, name: str, **values: Any) -> Row:
    """A finding about a queue that started so many minutes ago and is still active."""
    at = this_minute() - timedelta(minutes=back)
    reported = {"began": at, "last_told": at, "rule": "stuck-consumer", "severity": "critical", "kind": "queue"}
    return row(EPISODES, **{**reported, "vhost": "/", "name": name, **values})


def write_story(root: Path, name: str = "orders", cluster: str = "shop") -> None:
    """A consumer that stopped 30 minutes ago, its effects, and one hour of the queue above its band."""
    now = this_minute()
    hours = [now.replace(minute=0) - timedelta(hours=it) for it in range(30)]
    known = {"family": "queues", "minutes": 60}
    put(root, POLLS, [row(POLLS, hour=at, first_minute=at, last_minute=at, **known) for at in hours], cluster)
    moves = [moved(30, name, "acked", 120.0, 0.0), moved(29, name, "ready", 3.0, 9000.0, score=90.0)]
    moves.append(moved(29, "10.0.0.7:4001", "unacked", 3.0, 50.0, kind="channel", queue=name))
    put(root, CHANGES, [*moves, moved(20, "invoices", "published", 40.0, 0.0, score=300.0)], cluster)
    put(root, EPISODES, [episode(28, name)], cluster)
    minutes = [now - timedelta(minutes=it) for it in range(60, 0, -1)]
    rollup_files.write(
        root,
        QUEUES_1M,
        [queue_row(at, name, 10 if at < now - timedelta(minutes=30) else 900) for at in minutes],
        cluster,
    )
    numbers = sorted({hour_of_week(at.timestamp()) for at in minutes})
    usual = {"made_at": now, "kind": "queue", "vhost": "/", "name": name}
    put(
        root,
        BASELINES,
        [
            *(
                row(BASELINES, hour_of_week=it, measure="ready", scope=HOUR_OF_WEEK, values=4, low=0.0, middle=5.0,
                    high=50.0, **usual)
                for it in numbers
            ),
            *(
                row(BASELINES, hour_of_week=it, measure="acked", scope=NOT_YET, values=2, reason="2 of 3 days", **usual)
                for it in numbers
            ),
        ],
        cluster,
    )  # fmt: skip
    write_answers(root, document(name), cluster)


def write_answers(root: Path, reported: dict[str, Any], cluster: str = "shop") -> Path:
    """Write the report document."""
    path = root / "_answers" / f"{quote(cluster, safe='')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(reported))
    return path


def answer(question: str, rows: list[Row], reported: list[str] | None = None, **values: Any) -> dict[str, Any]:
    """A report on two weeks of data with a gap."""
    data = {"asked_from": "2026-03-01T00:00:00Z", "asked_to": "2026-03-15T00:00:00Z"}
    data |= {"first": "2026-03-02T00:00:00Z", "last": "2026-03-15T00:00:00Z", "minutes": 18_000, "gap_minutes": 300}
    base = {"question": question, "asked": {}, "data": data, "told": reported or ["nothing"], "rows": rows}
    return {**base, "because": None, "more": {}, **values}


def cannot_tell(question: str, because: str) -> dict[str, Any]:
    """A report without a result."""
    data = {"asked_from": "2026-03-01T00:00:00Z", "asked_to": "2026-03-15T00:00:00Z", "first": None, "last": None}
    return answer(question, [], because=because, data=data)


def not_yet() -> dict[str, Any]:
    """The reports of a pipeline that started today."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251  as the pipeline of this moment
    return {
        "version": 1,
        "cluster": "shop",
        "made_at": now,
        "worst": {by: cannot_tell("worst", "queues_1h has no hour in this time") for by in ("redelivered", "ceiling")},
        "weeks": cannot_tell("weeks", "there is no data of the last two weeks"),
        "capacity": cannot_tell("capacity", "there are no hours of queues or nodes in this time"),
        "slo": cannot_tell("slo", "there are no probe messages in this time"),
        "recurrences": {"from": now, "data_until": None, "rows": [], "all": 0},
    }


def document(name: str = "orders") -> dict[str, Any]:
    """A report document in which every report has a result."""
    worst = {"vhost": "/", "queue": name, "value": 150, "beside": 600, "share": 0.75}
    tail = {"stream": name, "value": 0.21, "beside": 0.003, "max": 2.5, "messages": 9000, "share": 1.0}
    slo = {
        "stream": "all", "messages": 100_000, "bad": 250, "good": 0.9975, "good_at_most": 0.9995, "budget_left": -1.5,
        "burn": {"1h": 6.0, "6h": 2.5, "3d": None}, "gone_in_seconds": None,
    }  # fmt: skip
    stream = {**slo, "stream": name, "good": 0.9999, "good_at_most": 0.9999, "budget_left": 0.9,
              "gone_in_seconds": 7200.0}  # fmt: skip
    weeks = [
        {"measure": "published", "unit": "rate", "this_week": 20.0, "week_before": 10.0, "change": 1.0, "hours": 160},
        {
            "measure": "confirm_p99",
            "unit": "seconds",
            "this_week": None,
            "week_before": None,
            "change": None,
            "hours": 0,
        },
    ]
    full = [
        {"what": "disk", "verdict": "reaches it", "earliest": 0.0, "name": name, "kind": "node"},
        {"what": "memory", "verdict": "not yet", "earliest": None, "name": name, "kind": "node"},
        {"what": "memory", "verdict": "no trend", "earliest": None, "name": name, "kind": "node"},
    ]
    reported = [
        f"free disk of node {name!r}: reaches its limit",
        f"memory of node {name!r}: not yet: 2 of 4 days",
        name,
    ]
    comes = {
        "rule": name, "severity": "critical", "kind": "queue", "vhost": "/", "name": name, "times": 9, "there": "yes",
        "first": "2026-03-01T00:00:00Z", "began": "2026-03-14T03:00:00Z", "began_before": False, "ended": None,
        "median_seconds": 1800.0, "longest_seconds": 3600.0, "typical": "03:00 to 06:00 UTC (9 of 9)", "told": name,
    }  # fmt: skip
    movers = [{"vhost": "/", "queue": name, "published": 900, "published_before": 300}]
    return {
        **not_yet(),
        "worst": {
            "redelivered": answer("worst", [worst]),
            "ceiling": answer("worst", [worst]),
            "confirm": answer("worst", [tail]),
            "backlog": answer("worst", [], ["no queue held a message at the end of any hour"]),
        },
        "weeks": answer("weeks", weeks, more={"queues": movers}),
        "capacity": answer("capacity", full, reported),
        "slo": answer(
            "slo", [slo, stream], ["100 ms lies inside a bucket"], asked={"under_seconds": 0.1, "target": 0.999}
        ),
        "recurrences": {"from": "", "data_until": "2026-03-15T00:00:00Z", "rows": [comes], "all": 40},
    }
