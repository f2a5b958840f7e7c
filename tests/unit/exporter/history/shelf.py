"""Writes a rollup folder like that of the pipeline."""

from datetime import UTC, datetime

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.baselines import HOUR_OF_WEEK, hour_of_week
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import BASELINES
from tests.unit.exporter.made import WALL

HOUR = hour_of_week(WALL)


def row(measure="ready", *, hour=HOUR, made_at=WALL - 3600, **fields):
    """Return the row of a band of the queue `orders`."""
    usual = {
        "made_at": datetime.fromtimestamp(made_at, UTC),
        "hour_of_week": hour,
        "kind": "queue",
        "vhost": "/",
        "name": "orders",
        "measure": measure,
        "scope": HOUR_OF_WEEK,
        "values": 6,
        "low": 1.0,
        "middle": 5.0,
        "high": 9.0,
        "reason": None,
    }
    return {**usual, **fields}


def unknown(measure="acked", **fields):
    """Return the row of a measure with too little history."""
    return row(
        measure,
        **{
            "scope": "not-yet",
            "values": 2,
            "low": None,
            "middle": None,
            "high": None,
            "reason": "2 of 3 days",
            **fields,
        },
    )


def shelve(root, *rows, cluster="shop", hour=HOUR, hours=1, digest="one", number=1):
    """Write the bands of some hours, and a manifest that names them; returns the file."""
    path = f"{BASELINES.name}/cluster={cluster}/date=1970-01-01/hour={hour:03d}.{digest}.parquet"
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema()), file)
    files = {BASELINES.name: (DataFile(path, hour, hour + hours, len(rows)),)}
    place = manifest.manifest_path(root, cluster)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(manifest.encode(Manifest(cluster, number, "2023-11-14T22:13:20Z", files)))
    return file


def schema():
    """Return the Arrow schema of the table."""
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([(column.name, types[column.kind]) for column in BASELINES.columns])


def say(root, **status):
    """Write the status file of the pipeline."""
    (root / "_status.json").write_bytes(orjson.dumps(status))
