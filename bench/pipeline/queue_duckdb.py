"""The minutes of queues with DuckDB, in SQL."""

from pathlib import Path

from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M
from bench.pipeline.contenders import connected
from bench.pipeline.queue_terms import COUNTERS, FAMILY, HOLDS, KEY, LEVELS, MINUTE, NEAR, Rollup, RollupWindow, bounds


def duckdb() -> Rollup:
    """Return the rollup as a single SQL statement."""
    base = connected()

    def rollup(window: RollupWindow, to: Path) -> None:
        parts = {**_polls(window), **_known(window), **_spread(window)}
        steps = ", ".join(f"{name} AS ({query})" for name, query in parts.items())
        made = f"WITH {steps} {_minutes()}"
        base.execute(f"COPY ({made}) TO '{to}' (FORMAT parquet, COMPRESSION zstd)")

    return rollup


def _read(window: RollupWindow, table: str) -> str:
    start, end = bounds(window)
    return (
        f'(SELECT * RENAME ("at" AS moment) FROM read_parquet({window[table]!r})) '  # noqa: S608  our own words, here and below
        f"WHERE moment >= make_timestamptz({start - NEAR}) AND moment < make_timestamptz({end + NEAR})"
    )


def _polls(window: RollupWindow) -> dict[str, str]:
    """Return queries for the number of polls up to the times of samples, and up to the minutes."""
    start, end = bounds(window)
    return {
        "polls": (
            "SELECT epoch_us(moment) AS poll, bool_or(whole) AS whole "  # noqa: S608
            f"FROM {_read(window, POLL_SAMPLES.name)} AND family = '{FAMILY}' AND success GROUP BY moment"
        ),
        "times": (
            "SELECT moment, count(*) FILTER (poll <= epoch_us(moment)) AS low, "  # noqa: S608
            "count(*) FILTER (poll < epoch_us(moment)) AS before, "
            f"count(*) FILTER (poll < epoch_us(moment) + {HOLDS}) AS old, "
            "min(poll) FILTER (whole AND poll > epoch_us(moment)) AS ended "
            f"FROM (SELECT DISTINCT moment FROM {_read(window, QUEUE_SAMPLES.name)}) LEFT JOIN polls ON true "
            "GROUP BY moment"
        ),
        "moments": (
            "SELECT *, CASE WHEN ended IS NOT NULL THEN (SELECT count(*) FROM polls WHERE poll < ended) END "
            "AS before_end FROM times"
        ),
        "minutes": (
            f"SELECT minute, count(*) FILTER (poll < minute) AS first, count(*) FILTER (poll < minute + {MINUTE}) "  # noqa: S608
            f"AS last FROM (SELECT unnest(range({start}, {end}, {MINUTE})) AS minute) LEFT JOIN polls ON true "
            "GROUP BY minute"
        ),
    }


def _known(window: RollupWindow) -> dict[str, str]:
    """Return queries for distinct samples, with queue numbers and the counters known before them."""
    samples = _read(window, QUEUE_SAMPLES.name)
    rest = ", ".join(f"any_value({name}) AS {name}" for name in QUEUE_SAMPLES.names if name not in KEY)
    counted = ", ".join(f"CASE WHEN gone THEN 0 ELSE {name} END AS {name}" for name in COUNTERS)
    then = ", ".join(_earlier(f"{name} IS NOT NULL", f"{{told: told, value: {name}}}", name) for name in COUNTERS)
    some = _earlier(f"coalesce({', '.join(COUNTERS)}) IS NOT NULL", "told", "some")
    return {
        # Numbers in the order of the names, because sorting and grouping by number is much faster.
        "queues": (
            "SELECT vhost, queue, row_number() OVER (ORDER BY vhost, queue) AS id "  # noqa: S608
            f"FROM (SELECT DISTINCT vhost, queue FROM {samples})"
        ),
        "seen": (
            f"SELECT id, moment, {rest} FROM (SELECT * FROM {samples}) JOIN queues USING (vhost, queue) "  # noqa: S608
            "GROUP BY id, moment"
        ),
        "stated": (
            f"SELECT id, queue_type, {', '.join(LEVELS)}, epoch_us(moment) AS moment, "  # noqa: S608
            "epoch_us(least(details_at, seen.moment)) AS told, coalesce(gone, false) AS gone, "
            f"details_at IS NOT NULL AS older, low, before, old, ended, before_end, {counted} "
            "FROM seen JOIN moments USING (moment)"
        ),
        "known": (
            "SELECT *, lead(moment) OVER own AS next, lead(before) OVER own AS before_next, "  # noqa: S608
            f"{then}, {some} FROM stated WINDOW own AS (PARTITION BY id ORDER BY moment)"
        ),
    }


def _earlier(where: str, value: str, name: str) -> str:
    return f"lag(CASE WHEN {where} THEN {value} END IGNORE NULLS) OVER own AS {name}_then"


def _spread(window: RollupWindow) -> dict[str, str]:
    """Return queries for samples by the minutes that they affect."""
    start, end = bounds(window)
    since = ", ".join(
        f"CASE WHEN gone OR {name} IS NULL THEN NULL WHEN {_fresh(f'{name}_then.told')} THEN {name}_then "
        f"WHEN {_fresh('some_then')} THEN {{told: some_then, value: 0}} END AS {name}_since"
        for name in COUNTERS
    )
    grown = ", ".join(
        f"{name}_since.told AS {name}_told, "
        f"CASE WHEN {name} >= {name}_since.value THEN {name} - {name}_since.value ELSE {name} END AS {name}_grown"
        for name in COUNTERS
    )
    first = f"least(told, {', '.join(f'{name}_told' for name in COUNTERS)})"
    last = "greatest(moment, until - 1)"
    return {
        "since": (
            f"SELECT *, {since}, CASE WHEN gone THEN moment ELSE least(moment + {HOLDS}, next, ended) END AS until, "  # noqa: S608
            "CASE WHEN gone THEN low ELSE least(old, before_next, before_end) END AS high FROM known"
        ),
        "held": f"SELECT *, {grown} FROM since",  # noqa: S608
        "spread": (
            f"SELECT *, unnest(range(greatest({first} - {first} % {MINUTE}, {start}), "  # noqa: S608
            f"least({last}, {end} - 1) + 1, {MINUTE})) AS minute FROM held"
        ),
        "counted": (
            "SELECT *, greatest(0, least(high, last) - greatest(low, first)) "  # noqa: S608
            f"+ (NOT gone AND moment >= minute AND moment < minute + {MINUTE})::BIGINT AS polls "
            "FROM spread JOIN minutes USING (minute)"
        ),
    }


def _fresh(then: str) -> str:
    return f"told > {then} AND moment - {then} <= {NEAR}"


def _minutes() -> str:
    held = "FILTER (polls > 0)"
    levels = ", ".join(
        f"{most}({name}) {held} AS {name}_{most}, arg_max_null({name}, moment) {held} AS {name}_last"
        for name, most in LEVELS.items()
    )
    grown = ", ".join(f"sum({_share(name)})::BIGINT AS {called}" for name, called in COUNTERS.items())
    known = f"samples > 0 OR coalesce({', '.join(COUNTERS.values())}) IS NOT NULL"
    made = (
        f"SELECT id, minute, max(queue_type) AS queue_type, sum(polls)::BIGINT AS samples, {levels}, {grown} "  # noqa: S608
        f"FROM counted GROUP BY id, minute HAVING {known}"
    )
    computed = {"minute": "make_timestamptz(minute) AS minute", "busy": "(published > 0)::BIGINT AS busy"}
    columns = ", ".join(computed.get(name, name) for name in QUEUES_1M.names)
    return f"SELECT {columns} FROM ({made}) made JOIN queues USING (id) ORDER BY made.minute, id"  # noqa: S608


def _share(name: str) -> str:
    def upto(moment: str) -> str:
        return f"floor({name}_grown * (({moment} - {name}_told) / (told - {name}_told)))::BIGINT"

    start, end = f"greatest({name}_told, minute)", f"least(told, minute + {MINUTE})"
    return (
        f"CASE WHEN {name}_told IS NOT NULL AND minute <= told AND minute + {MINUTE} > {name}_told "
        f"THEN {upto(end)} - {upto(start)} "
        f"WHEN polls > 0 AND moment < minute AND NOT older AND {name} IS NOT NULL THEN 0 END"
    )
