"""The minutes of queues with Polars expressions."""

import importlib
from pathlib import Path
from typing import Any

from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M
from bench.pipeline.queue_terms import COUNTERS, FAMILY, HOLDS, LEVELS, MINUTE, NEAR, OWN, Rollup, RollupWindow, bounds


def polars() -> Rollup:
    """Return the rollup with lazy scans of the files, and poll numbers by numpy's bisection."""
    pl, np = importlib.import_module("polars"), importlib.import_module("numpy")

    def earlier(where: Any) -> Any:
        """Return the latest earlier row number of the same queue that meets a condition; rows must be sorted."""
        row = pl.when(where).then(pl.col("row")).forward_fill().shift(1)
        return pl.when(row >= pl.col("first")).then(row)

    def fresh(then: str) -> Any:
        return (pl.col("told") > pl.col(then)) & (pl.col("at") - pl.col(then) <= NEAR)

    def read(window: RollupWindow, table: str) -> Any:
        start, end = bounds(window)
        rows = pl.scan_parquet(window[table]).with_columns(pl.col("at").dt.epoch("us"))
        return rows.filter(pl.col("at").is_between(start - NEAR, end + NEAR, closed="left"))

    def known(rows: Any) -> Any:
        """Return distinct samples in order, with the counters known before them."""
        tombstone, details = pl.col("gone").fill_null(value=False), pl.col("details_at").dt.epoch("us")
        rows = rows.sort("id", "at")
        # Sorted, so duplicate rows are adjacent.
        rows = rows.filter((pl.col("at") != pl.col("at").shift(1, fill_value=0)) | (pl.col("id").diff() != 0))
        rows = rows.with_columns(
            pl.min_horizontal(details, "at").alias("told"),
            tombstone,
            details.is_not_null().alias("older"),
            *(pl.when(tombstone).then(0).otherwise(pl.col(name)).alias(name) for name in COUNTERS),
        )
        rows = rows.with_row_index("row").with_columns(
            pl.when(pl.col("id").diff().fill_null(1) != 0).then(pl.col("row")).forward_fill().alias("first"),
            pl.when(pl.col("id") == pl.col("id").shift(-1)).then(pl.col("at").shift(-1)).alias("next"),
        )
        rows = rows.with_columns(
            earlier(pl.any_horizontal(pl.col(*COUNTERS).is_not_null())).alias("some_row"),
            *(earlier(pl.col(name).is_not_null()).alias(f"{name}_row") for name in COUNTERS),
        )
        return rows.with_columns(
            *(pl.col("told").gather(f"{name}_row").alias(f"{name}_told") for name in ("some", *COUNTERS)),
            *(pl.col(name).gather(f"{name}_row").alias(f"{name}_then") for name in COUNTERS),
        )

    def grown(rows: Any) -> Any:
        """Return the start and the size of each increase."""
        columns = []
        for name in COUNTERS:
            known_at = pl.when(fresh(f"{name}_told")).then(pl.col(f"{name}_told"))
            known_at = known_at.when(fresh("some_told")).then(pl.col("some_told"))
            now, before = pl.col(name), pl.when(fresh(f"{name}_told")).then(pl.col(f"{name}_then")).otherwise(0)
            columns += [
                pl.when(~pl.col("gone") & now.is_not_null()).then(known_at).alias(f"{name}_told"),
                pl.when(now >= before).then(now - before).otherwise(now).alias(f"{name}_grown"),
            ]
        return rows.with_columns(columns)

    def share(name: str) -> Any:
        known_at, since, minute = pl.col("told"), pl.col(f"{name}_told"), pl.col("minute")

        def upto(moment: Any) -> Any:
            return (pl.col(f"{name}_grown") * ((moment - since) / (known_at - since))).floor().cast(pl.Int64)

        start, end = pl.max_horizontal(since, minute), pl.min_horizontal(known_at, minute + MINUTE)
        inside = since.is_not_null() & (minute <= known_at) & (minute + MINUTE > since)
        unchanged = (pl.col("polls") > 0) & (pl.col("at") < minute) & ~pl.col("older") & pl.col(name).is_not_null()
        return pl.when(inside).then(upto(end) - upto(start)).when(unchanged).then(0)

    def rollup(window: RollupWindow, to: Path) -> None:
        start, end = bounds(window)
        polls = read(window, POLL_SAMPLES.name).filter(pl.col("family") == FAMILY, "success")
        good = polls.select("at", "whole").collect()
        times, wholes = np.unique(good["at"]), np.unique(good.filter("whole")["at"])
        samples = read(window, QUEUE_SAMPLES.name).collect()
        # Numbers in the order of the names, because sorting and grouping by number is much faster.
        queues = samples.select(OWN).unique().sort(OWN).with_row_index("id")
        rows = grown(known(samples.lazy().join(queues.lazy(), on=OWN).drop(OWN))).collect()
        at = rows["at"].to_numpy()
        whole = np.append(wholes, np.iinfo(np.int64).max)[np.searchsorted(wholes, at, "right")]
        until = pl.min_horizontal(pl.col("at") + HOLDS, "next", pl.Series(whole))
        rows = rows.with_columns(
            pl.Series("low", np.searchsorted(times, at, "right")),
            pl.when("gone").then(pl.col("at")).otherwise(until).alias("until"),
        )
        rows = rows.with_columns(pl.Series("high", np.searchsorted(times, rows["until"].to_numpy(), "left")))
        first = pl.min_horizontal("told", *(f"{name}_told" for name in COUNTERS))
        first = pl.max_horizontal(first - first % MINUTE, start)
        last = pl.min_horizontal(pl.max_horizontal("at", pl.col("until") - 1), end - 1)
        minutes = np.arange(start, end, MINUTE)
        numbers = {
            "minute": minutes,
            "from": np.searchsorted(times, minutes, "left"),
            "to": np.searchsorted(times, minutes + MINUTE, "left"),
        }
        others = pl.min_horizontal("high", "to") - pl.max_horizontal("low", "from")
        itself = ~pl.col("gone") & (pl.col("at") >= pl.col("minute")) & (pl.col("at") < pl.col("minute") + MINUTE)
        spread = (
            rows.lazy()
            .filter(first <= last)
            .with_columns(pl.int_ranges(first, last + 1, MINUTE).alias("minute"))
            .explode("minute")
            .join(pl.LazyFrame(numbers), on="minute", maintain_order="left")
            .with_columns((pl.max_horizontal(others, 0) + itself).alias("polls"))
            .with_columns(share(name).alias(called) for name, called in COUNTERS.items())
        )
        held = pl.col("polls") > 0
        made = (
            spread.group_by("id", "minute")
            .agg(
                pl.col("queue_type").max(),
                pl.col("polls").sum().alias("samples"),
                *(getattr(pl.col(name).filter(held), most)().alias(f"{name}_{most}") for name, most in LEVELS.items()),
                *(pl.col(name).filter(held).last().alias(f"{name}_last") for name in LEVELS),
                *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in COUNTERS.values()),
            )
            .filter((pl.col("samples") > 0) | pl.any_horizontal(pl.col(*COUNTERS.values()).is_not_null()))
            .with_columns(
                pl.col("minute").cast(pl.Datetime("us", "UTC")),
                (pl.col("published") > 0).cast(pl.Int64).alias("busy"),
            )
        )
        named = made.sort("minute", "id").join(queues.lazy(), on="id", maintain_order="left")
        named.select(QUEUES_1M.names).collect().write_parquet(to, compression="zstd")

    return rollup
