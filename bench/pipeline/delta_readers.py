"""Read a published Delta table with an engine that knows nothing of ackscope.

`python -m bench.pipeline.delta_readers ENGINE`: a line on stdin for each request, {"folder", "version", "where"}, and a
line on stdout with its rows: [[column, ...], [value, ...], ...], ordered by all columns. `version` null is the newest;
`where` is [column, lowest, highest] of a text column, or null. "options" are those of a table in a bucket. Times are in
microseconds since 1970, dates are text.
"""

import importlib
import json
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from deltalake import DeltaTable

Where = tuple[str, str, str] | None
Rows = list[dict[str, Any]]


def _pandas(table: DeltaTable, where: Where) -> Rows:
    frame = table.to_pandas(filters=None if where is None else [(where[0], ">=", where[1]), (where[0], "<=", where[2])])
    plain_frame: Any = frame.astype(object).where(frame.notna(), None)
    found: Rows = plain_frame.to_dict("records")
    return found


def _polars(table: DeltaTable, where: Where) -> Rows:
    pl = importlib.import_module("polars")
    lazy = pl.scan_delta(table)
    if where is not None:
        lazy = lazy.filter(pl.col(where[0]).is_between(pl.lit(where[1]), pl.lit(where[2])))
    found: Rows = lazy.collect().to_dicts()
    return found


def _duckdb(table: DeltaTable, where: Where) -> Rows:
    duckdb = importlib.import_module("duckdb")
    # Its own extension for Delta is downloaded at run time. So it gets the data set of delta-rs, with the statistics.
    history = table.to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("history", history)
    text = "SELECT * FROM history" + ("" if where is None else f' WHERE "{where[0]}" BETWEEN ? AND ?')  # noqa: S608  a bench
    found: Rows = connection.sql(text, params=[] if where is None else list(where[1:])).to_arrow_table().to_pylist()
    return found


ENGINES: dict[str, Callable[[DeltaTable, Where], Rows]] = {"pandas": _pandas, "polars": _polars, "duckdb": _duckdb}


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
        request = json.loads(line)
        table = DeltaTable(request["folder"], version=request["version"], storage_options=request.get("options"))
        rows = read(table, tuple(request["where"]) if request["where"] else None)
        columns = [it.name for it in table.schema().fields]
        found = [[plain(row[name]) for name in columns] for row in rows]
        print(json.dumps([columns, *sorted(found, key=json.dumps)]), flush=True)


if __name__ == "__main__":
    main()
