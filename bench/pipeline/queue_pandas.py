"""The minutes of queues with pandas, and numpy for arrays."""

import importlib
from pathlib import Path
from typing import Any

from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M, Kind
from bench.pipeline.queue_terms import (
    COUNTERS,
    FAMILY,
    HOLDS,
    KEY,
    LEVELS,
    MINUTE,
    NEAR,
    OWN,
    Rollup,
    RollupWindow,
    bounds,
)


def pandas() -> Rollup:
    """Return the rollup with text as categories, and queues by number."""
    pd, np = importlib.import_module("pandas"), importlib.import_module("numpy")
    parquet, arrow = importlib.import_module("pyarrow.parquet"), importlib.import_module("pyarrow")

    def read(window: RollupWindow, table: str, columns: list[str], text: list[str]) -> Any:
        parts = [parquet.read_table(path, columns=columns, read_dictionary=text) for path in window[table]]
        rows = arrow.concat_tables(parts).unify_dictionaries()
        for name in {"at", "details_at"}.intersection(columns):
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast("int64"))
        start, end = bounds(window)
        frame = rows.to_pandas()
        return frame[(frame["at"] >= start - NEAR) & (frame["at"] < end + NEAR)]

    def known(window: RollupWindow) -> Any:
        """Return distinct samples in order, with the counters known before them."""
        rows = read(window, QUEUE_SAMPLES.name, list(QUEUE_SAMPLES.names), [*OWN, "queue_type"]).drop_duplicates(KEY)
        rows["number"] = rows.groupby(OWN, observed=True, sort=False).ngroup()
        rows = rows.sort_values(["number", "at"], ignore_index=True)
        rows["gone"] = rows["gone"].fillna(value=False).astype(bool)
        rows["older"], rows["told"] = rows["details_at"].notna(), rows[["details_at", "at"]].min(axis=1).astype("int64")
        rows["next"] = rows.groupby("number")["at"].shift(-1)
        for name in COUNTERS:
            rows[name] = rows[name].mask(rows["gone"], 0)
        there = rows[list(COUNTERS)].notna()
        then = {"some_told": rows["told"].where(there.any(axis=1))}
        for name in COUNTERS:
            then |= {f"{name}_told": rows["told"].where(there[name]), f"{name}_then": rows[name]}
        before = pd.DataFrame(then).groupby(rows["number"]).ffill().groupby(rows["number"]).shift()

        def fresh(name: str) -> Any:
            return (rows["told"] > before[name]) & (rows["at"] - before[name] <= NEAR)

        for name in COUNTERS:
            own = fresh(f"{name}_told")
            known_at = before[f"{name}_told"].where(own, before["some_told"].where(fresh("some_told")))
            rows[f"{name}_told"] = known_at.where(there[name] & ~rows["gone"])
            value = before[f"{name}_then"].where(own, 0)
            rows[f"{name}_grown"] = (rows[name] - value).where(rows[name] >= value, rows[name])
        return rows

    def spread(rows: Any, window: RollupWindow, times: Any, wholes: Any) -> Any:
        """Return samples by the minutes that they affect, with the number of polls in each."""
        start, end = bounds(window)
        at = rows["at"].to_numpy()
        whole = np.append(wholes, np.inf)[np.searchsorted(wholes, at, "right")]
        until = np.fmin(np.fmin(at + HOLDS, rows["next"]), whole).where(~rows["gone"], at).to_numpy().astype("int64")
        first = rows[["told", *(f"{name}_told" for name in COUNTERS)]].min(axis=1).to_numpy().astype("int64")
        first = np.maximum(first - first % MINUTE, start)
        count = np.maximum((np.minimum(np.maximum(at, until - 1), end - 1) - first) // MINUTE + 1, 0)
        place = np.repeat(np.arange(len(rows)), count)
        minute = first[place] + (np.arange(len(place)) - np.repeat(count.cumsum() - count, count)) * MINUTE
        low, high = np.searchsorted(times, at, "right")[place], np.searchsorted(times, until, "left")[place]
        minutes = np.searchsorted(times, np.arange(start, end + 1, MINUTE), "left")
        index = (minute - start) // MINUTE
        polls = np.maximum(np.minimum(high, minutes[index + 1]) - np.maximum(low, minutes[index]), 0)
        itself = ~rows["gone"].to_numpy()[place] & (at[place] >= minute) & (at[place] < minute + MINUTE)
        return rows.take(place).assign(minute=minute, polls=polls + itself)

    def share(rows: Any, name: str) -> Any:
        known_at, since, minute = rows["told"], rows[f"{name}_told"], rows["minute"]

        def upto(moment: Any) -> Any:
            return np.floor(rows[f"{name}_grown"] * ((moment - since) / (known_at - since)))

        inside = (minute <= known_at) & (minute + MINUTE > since)
        unchanged = (rows["polls"] > 0) & (rows["at"] < minute) & ~rows["older"] & rows[name].notna()
        part = upto(np.minimum(known_at, minute + MINUTE)) - upto(np.maximum(since, minute))
        return part.where(inside, unchanged.astype("float64").where(unchanged) * 0)

    def rollup(window: RollupWindow, to: Path) -> None:
        polls = read(window, POLL_SAMPLES.name, ["at", "family", "success", "whole"], ["family"])
        good = polls[(polls["family"] == FAMILY) & polls["success"].fillna(value=False).astype(bool)]
        whole = good["whole"].fillna(value=False).astype(bool)
        samples = known(window)
        types = samples["queue_type"].cat
        samples["queue_type"] = types.set_categories(sorted(types.categories)).cat.codes
        rows = spread(samples, window, np.unique(good["at"]), np.unique(good.loc[whole, "at"]))
        for name, called in COUNTERS.items():
            rows[called] = share(rows, name)
        by = ["number", "minute"]
        held = rows[rows["polls"] > 0]
        most = {f"{name}_{most}": (name, most) for name, most in LEVELS.items()}
        last = held.drop_duplicates(by, keep="last").set_index(by)[list(LEVELS)]
        groups = rows.groupby(by)
        made = groups[list(COUNTERS.values())].sum(min_count=1)
        made = made.join(groups.agg(samples=("polls", "sum"), queue_type=("queue_type", "max")))
        made = made.join(held.groupby(by).agg(**most)).join(last.add_suffix("_last"))
        made = made[(made["samples"] > 0) | made[list(COUNTERS.values())].notna().any(axis=1)].reset_index()
        made["busy"] = (made["published"] > 0).where(made["published"].notna())
        names = samples.drop_duplicates("number").set_index("number")[OWN]
        made = made.join(names, on="number").sort_values(["minute", *OWN])
        made["queue_type"] = pd.Categorical.from_codes(made["queue_type"], sorted(types.categories))
        made["minute"] = pd.to_datetime(made["minute"], unit="us", utc=True)
        whole_numbers = [column.name for column in QUEUES_1M.columns if column.kind == Kind.INT]
        made = made.astype(dict.fromkeys(whole_numbers, "Int64"))
        made[list(QUEUES_1M.names)].to_parquet(to, compression="zstd", index=False)

    return rollup
