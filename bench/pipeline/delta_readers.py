"""Read a published Delta table with an engine that knows nothing of ackscope.

`python -m bench.pipeline.delta_readers ENGINE`: a line on stdin for each request, {"folder", "version", "where"}, and a
line on stdout with its rows: [[column, ...], [value, ...], ...], ordered by all columns. `version` null is the newest;
`where` is [column, lowest, highest] of a text column, or null. "options" are those of a table in a bucket. Times are in
microseconds since 1970, dates are text. Spark has the environment `peers.spark_python`, all others `peers_python`.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from deltalake import DeltaTable

Request = dict[str, Any]
Rows = list[dict[str, Any]]
# Columns, and rows.
Answer = tuple[list[str], Rows]

SPARK = "spark"


def _table(request: Request) -> "DeltaTable":
    # The environment of Spark has no delta-rs.
    deltalake = importlib.import_module("deltalake")
    found: DeltaTable = deltalake.DeltaTable(
        request["folder"], version=request["version"], storage_options=request.get("options")
    )
    return found


def _columns(table: "DeltaTable") -> list[str]:
    return [it.name for it in table.schema().fields]


def _pandas(request: Request) -> Answer:
    where = request["where"]
    filters = None if where is None else [(where[0], ">=", where[1]), (where[0], "<=", where[2])]
    table = _table(request)
    frame = table.to_pandas(filters=filters)
    plain_frame: Any = frame.astype(object).where(frame.notna(), None)
    return _columns(table), plain_frame.to_dict("records")


def _polars(request: Request) -> Answer:
    pl, where = importlib.import_module("polars"), request["where"]
    table = _table(request)
    lazy = pl.scan_delta(table)
    if where is not None:
        lazy = lazy.filter(pl.col(where[0]).is_between(pl.lit(where[1]), pl.lit(where[2])))
    return _columns(table), lazy.collect().to_dicts()


def _duckdb(request: Request) -> Answer:
    duckdb, where = importlib.import_module("duckdb"), request["where"]
    # Its own extension for Delta is downloaded at run time. So it gets the data set of delta-rs, with the statistics.
    table = _table(request)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("history", table.to_pyarrow_dataset())
    text = "SELECT * FROM history" + ("" if where is None else f' WHERE "{where[0]}" BETWEEN ? AND ?')  # noqa: S608  a bench
    rows = connection.sql(text, params=[] if where is None else list(where[1:])).to_arrow_table()
    return _columns(table), rows.to_pylist()


def _spark(request: Request) -> Answer:
    functions, where = importlib.import_module("pyspark.sql.functions"), request["where"]
    reader = _session().read.format("delta")
    if request["version"] is not None:
        reader = reader.option("versionAsOf", request["version"])
    # An address of delta-rs is a URL, with its names encoded; Hadoop takes names as they are.
    scheme, _, rest = request["folder"].rpartition("://")
    frame = reader.load(f"s3a://{unquote(rest)}" if scheme == "s3" else request["folder"])
    if where is not None:
        frame = frame.filter(functions.col(where[0]).between(where[1], where[2]))
    return frame.columns, [row.asDict() for row in frame.collect()]


@cache
def _session() -> Any:
    """Spark with Delta, as its documentation says; a bucket is that of the environment."""
    # PySpark gives times in the zone of its process, without the zone.
    os.environ["TZ"], os.environ["SPARK_LOCAL_IP"] = "UTC", "127.0.0.1"
    time.tzset()
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
    }
    if "AWS_ENDPOINT_URL" in os.environ:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


ENGINES: dict[str, Callable[[Request], Answer]] = {
    "pandas": _pandas,
    "polars": _polars,
    "duckdb": _duckdb,
    SPARK: _spark,
}


def plain(value: Any) -> Any:
    """A value as JSON has it, the same for all engines."""
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return round(moment.timestamp() * 1e6)
    return value.isoformat() if isinstance(value, date) else value


def main() -> None:
    """Serve requests until stdin ends."""
    read = ENGINES[sys.argv[1]]
    for line in sys.stdin:
        columns, rows = read(json.loads(line))
        found = [[plain(row[name]) for name in columns] for row in rows]
        print(json.dumps([columns, *sorted(found, key=json.dumps)]), flush=True)


if __name__ == "__main__":
    main()
