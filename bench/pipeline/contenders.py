"""The minute rollup with DuckDB, Polars or pandas, in its own process and venv: `contenders.py ENGINE`.

One line of JSON on stdin requests a rollup, one on stdout has the result: {"hours": [{"start", "end", "files"}], "to",
"distinct"} -> {"messages", "counted", "nanoseconds"}. Hours are seconds since 1970. Each engine does what its users
would, one hour at a time like ackscope: drop duplicate keys, count outcomes, put four durations into 48 buckets, and
write both tables as Parquet.
"""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackscope import latency
from ackscope.tables import MEASURES, OUTCOMES, PROBE_MESSAGES
from ackscope.tables.landing import STREAM

KEY = list(PROBE_MESSAGES.key)
BY = ["minute", *(column.name for column in STREAM), "delivery_mode"]
_COLUMNS = [*dict.fromkeys([*KEY, *BY[1:], "intended_at", "outcome", *MEASURES]), "deliveries", "redelivered"]
_COLUMNS += ["out_of_order"]
_LONGEST = 1e8
_THREADS = 2

RollupSums = dict[str, int]
Rollup = Callable[[dict[str, Any], Path, bool], RollupSums]


# ------------------------------------------------------------ DuckDB


def connected() -> Any:
    """Return a DuckDB connection with the memory and threads of ackscope."""
    base = importlib.import_module("duckdb").connect()
    base.execute(f"SET threads = {_THREADS}; SET memory_limit = '2GB'; SET TimeZone = 'UTC'")
    return base


def duckdb() -> Rollup:
    """Return the rollup in SQL."""
    base = connected()
    by = ", ".join(BY)

    def rollup(hour: dict[str, Any], to: Path, distinct: bool) -> RollupSums:  # noqa: FBT001  one signature for all
        rest = ", ".join(f"any_value({name}) AS {name}" for name in _COLUMNS if name not in KEY)
        chosen = f"{', '.join(KEY)}, {rest}" if distinct else ", ".join(_COLUMNS)
        kind, source = ("TABLE", "kept") if distinct else ("VIEW", "seen")
        base.execute(
            f"CREATE OR REPLACE TEMP {kind} {source} AS SELECT {chosen}, "  # noqa: S608  our own words
            f"date_trunc('minute', {'any_value(intended_at)' if distinct else 'intended_at'}) AS minute "
            f"FROM read_parquet({hour['files']!r}) WHERE intended_at >= to_timestamp({hour['start']}) "
            f"AND intended_at < to_timestamp({hour['end']}) {'GROUP BY ' + ', '.join(KEY) if distinct else ''}"
        )
        counts = ", ".join(f"count(*) FILTER (outcome = '{name}') AS {name}" for name in OUTCOMES)
        outcomes = (
            f"SELECT {by}, count(*) AS messages, {counts}, count(*) FILTER (redelivered) AS redelivered, "  # noqa: S608  our own words
            "sum(CASE WHEN deliveries > 1 THEN deliveries - 1 ELSE 0 END) AS duplicates, "
            "count(*) FILTER (out_of_order) AS out_of_order, "
            f"count(*) FILTER (outcome = 'acked' AND deliveries = 0) AS missing FROM {source} GROUP BY {by}"
        )
        columns = ", ".join(
            f"sum(CASE WHEN bucket = {index} THEN n ELSE 0 END)::BIGINT AS {name}"
            for index, name in enumerate(latency.COLUMNS)
        )
        latencies = (
            f"WITH long AS (UNPIVOT (SELECT {by}, {', '.join(MEASURES)} FROM {source}) ON {', '.join(MEASURES)} "  # noqa: S608  our own words
            f"INTO NAME measure VALUE seconds), counted AS (SELECT {by}, measure, {_case()} AS bucket, count(*) AS n, "
            f"sum(round_even(seconds * 1e9, 0)::BIGINT) AS total, max(seconds) AS most FROM long WHERE seconds >= 0 "
            f"AND seconds <= {_LONGEST} GROUP BY ALL) "
            f"SELECT {by}, measure, sum(n)::BIGINT AS count, sum(total)::BIGINT AS nanos, max(most) AS max, {columns} "
            f"FROM counted GROUP BY {by}, measure"
        )
        for name, query in (("outcomes", outcomes), ("latency", latencies)):
            target = to / f"{name}.{hour['start']}.parquet"
            base.execute(f"COPY ({query} ORDER BY ALL) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        sums = base.execute(
            f"SELECT (SELECT sum(messages) FROM '{to}/outcomes.{hour['start']}.parquet'), sum(count), sum(nanos) "  # noqa: S608  our own words
            f"FROM '{to}/latency.{hour['start']}.parquet'"
        ).fetchone()
        return dict(zip(("messages", "counted", "nanoseconds"), map(int, sums), strict=True))

    return rollup


def _case(low: int = 0, high: int = latency.BUCKETS - 1) -> str:
    """Return a SQL expression for the bucket of `seconds`, by bisection."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    below, above = _case(low, middle), _case(middle + 1, high)
    return f"CASE WHEN seconds <= {latency.EDGES[middle]!r}::DOUBLE THEN {below} ELSE {above} END"


# ------------------------------------------------------------ Polars


def polars() -> Rollup:
    """Return the rollup with lazy scans of the files, and buckets by numpy's bisection."""
    pl, np = importlib.import_module("polars"), importlib.import_module("numpy")
    edges = np.array(latency.EDGES)

    def rollup(hour: dict[str, Any], to: Path, distinct: bool) -> RollupSums:  # noqa: FBT001  one signature for all
        when = pl.col("intended_at").dt.epoch("us")
        rows = pl.scan_parquet(hour["files"]).select(_COLUMNS)
        rows = rows.filter((when >= hour["start"] * 1_000_000) & (when < hour["end"] * 1_000_000))
        if distinct:
            rows = rows.unique(subset=KEY, keep="any")
        distinct_rows = rows.with_columns(pl.col("intended_at").dt.truncate("1m").alias("minute")).collect()
        waits = pl.col("deliveries")
        outcomes = distinct_rows.group_by(BY).agg(
            pl.len().alias("messages"),
            *((pl.col("outcome") == name).sum().alias(name) for name in OUTCOMES),
            pl.col("redelivered").sum(),
            pl.when(waits > 1).then(waits - 1).otherwise(0).sum().alias("duplicates"),
            pl.col("out_of_order").sum(),
            ((pl.col("outcome") == "acked") & (waits == 0)).sum().alias("missing"),
        )
        outcomes.sort(BY).write_parquet(to / f"outcomes.{hour['start']}.parquet", compression="zstd")
        parts = []
        for measure in MEASURES:
            part = distinct_rows.select(*BY, pl.col(measure).alias("seconds")).drop_nulls("seconds")
            part = part.filter((pl.col("seconds") >= 0) & (pl.col("seconds") <= _LONGEST))
            bucket = np.searchsorted(edges, part["seconds"].to_numpy(), "left").astype(np.int8)
            counted = (
                part.with_columns(pl.Series("bucket", bucket))
                .group_by(*BY, "bucket")
                .agg(
                    pl.len().cast(pl.Int64).alias("n"),
                    (pl.col("seconds") * 1e9).round(0).cast(pl.Int64).sum().alias("total"),
                    pl.col("seconds").max().alias("most"),
                )
            )
            sums = (
                pl.when(pl.col("bucket") == index).then(pl.col("n")).otherwise(0).sum().alias(name)
                for index, name in enumerate(latency.COLUMNS)
            )
            parts.append(
                counted.group_by(BY)
                .agg(pl.col("n").sum().alias("count"), pl.col("total").sum(), pl.col("most").max(), *sums)
                .with_columns(pl.lit(measure).alias("measure"))
            )
        whole = pl.concat(parts).sort(*BY, "measure")
        whole.write_parquet(to / f"latency.{hour['start']}.parquet", compression="zstd")
        return {
            "messages": int(outcomes["messages"].sum()),
            "counted": int(whole["count"].sum()),
            "nanoseconds": int(whole["total"].sum()),
        }

    return rollup


# ------------------------------------------------------------ pandas


def pandas() -> Rollup:
    """Return the rollup with text as categories, because it would not fit into memory otherwise."""
    pd, np = importlib.import_module("pandas"), importlib.import_module("numpy")
    parquet, arrow = importlib.import_module("pyarrow.parquet"), importlib.import_module("pyarrow")
    edges = np.array(latency.EDGES)
    text = [column.name for column in PROBE_MESSAGES.columns if column.kind == "string" and column.name in _COLUMNS]

    def rollup(hour: dict[str, Any], to: Path, distinct: bool) -> RollupSums:  # noqa: FBT001  one signature for all
        tables = [parquet.read_table(path, columns=_COLUMNS, read_dictionary=text) for path in hour["files"]]
        rows = arrow.concat_tables(tables).unify_dictionaries().to_pandas()
        second = rows["intended_at"].astype("int64") // 1_000_000
        rows = rows[(second >= hour["start"]) & (second < hour["end"])]
        if distinct:
            rows = rows.drop_duplicates(KEY)
        rows = rows.assign(minute=rows["intended_at"].dt.floor("min"))
        again = rows["deliveries"].fillna(0)
        flags = {name: rows["outcome"] == name for name in OUTCOMES} | {
            "redelivered": rows["redelivered"].fillna(value=False).astype(bool),
            "duplicates": (again - 1).clip(lower=0).astype("int64"),
            "out_of_order": rows["out_of_order"].fillna(value=False).astype(bool),
            "missing": (rows["outcome"] == "acked") & (rows["deliveries"] == 0),
        }
        by = [rows[name] for name in BY]
        outcomes = pd.DataFrame({**flags, "messages": 1}).groupby(by, observed=True).sum().reset_index()
        outcomes.to_parquet(to / f"outcomes.{hour['start']}.parquet", compression="zstd")
        parts = []
        for measure in MEASURES:
            there = rows[(rows[measure] >= 0) & (rows[measure] <= _LONGEST)]
            seconds = there[measure].to_numpy()
            frame = there[BY].assign(
                bucket=np.searchsorted(edges, seconds, "left"),
                nanos=np.rint(seconds * 1e9).astype("int64"),
                most=seconds,
            )
            groups = frame.groupby([*BY, "bucket"], observed=True)
            counted = groups.agg(n=("nanos", "size"), total=("nanos", "sum"), most=("most", "max")).reset_index()
            wide = counted.pivot_table(
                index=BY, columns="bucket", values="n", aggfunc="sum", fill_value=0, observed=True
            )
            wide = wide.reindex(columns=range(latency.BUCKETS), fill_value=0)
            wide.columns = list(latency.COLUMNS)
            sums = counted.groupby(BY, observed=True).agg(
                count=("n", "sum"), total=("total", "sum"), max=("most", "max")
            )
            parts.append(sums.join(wide).reset_index().assign(measure=measure))
        whole = pd.concat(parts)
        whole.to_parquet(to / f"latency.{hour['start']}.parquet", compression="zstd")
        return {
            "messages": int(outcomes["messages"].sum()),
            "counted": int(whole["count"].sum()),
            "nanoseconds": int(whole["total"].sum()),
        }

    return rollup


ENGINES: dict[str, Callable[[], Rollup]] = {"duckdb": duckdb, "polars": polars, "pandas": pandas}


def main() -> None:
    """Serve requests until stdin ends."""
    rollup = ENGINES[sys.argv[1]]()

    def answer(request: dict[str, Any], to: Path) -> RollupSums:
        total = dict.fromkeys(("messages", "counted", "nanoseconds"), 0)
        for hour in request["hours"]:
            for name, value in rollup(hour, to, request["distinct"]).items():
                total[name] += value
        return total

    serve(answer)


def serve(answer: Callable[[dict[str, Any], Path], dict[str, Any]]) -> None:
    """Answer each line of stdin with a line on stdout; `answer` gets the request and the output folder."""
    for line in sys.stdin:
        request = json.loads(line)
        to = Path(request["to"])
        to.mkdir(parents=True, exist_ok=True)
        print(json.dumps(answer(request, to)), flush=True)


if __name__ == "__main__":
    main()
