"""Number the polls in order of time, so that the count of polls between two times is a difference.

The number of a poll is looked up by minute. So the cost of a row does not grow with the number of polls, and Spark can
compile everything that is done per minute and object.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT

# Microseconds since 1970, like all times here.
Micros = npt.NDArray[np.int64]

MINUTE = 60_000_000

_HOLD_MICROS = round(HEARTBEAT * 1_000_000)
# The hold time rounded up to whole minutes: no older sample holds at a poll.
_HOLD_MINUTES_MICROS = -(-_HOLD_MICROS // MINUTE) * MINUTE

_NO_MINUTE = 1 << 62


def number_polls(spark: SparkSession, polls: pa.Table, scope: Sequence[str] = ()) -> DataFrame:
    """The numbered polls of each minute (`by_minute`), broadcast. There are few, so they are numbered in the driver.

    Args:
        spark: the session.
        polls: `at`, and `whole`: objects without a row at this poll did not exist.
        scope: columns of text; the polls of each combination of their values are numbered apart.
    """
    found = []
    groups = polls.group_by([*scope]).aggregate([]).to_pylist() if scope else [{}]
    for group in groups or [dict.fromkeys(scope, "")]:
        mine = polls
        for name, value in group.items():
            mine = mine.filter(pc.field(name) == value)
        times, wholes = (
            np.unique(held["at"].cast(pa.int64()).to_numpy()) for held in (mine, mine.filter(pc.field("whole")))
        )
        minutes = by_minute(times, wholes)
        for name, value in group.items():
            minutes = minutes.append_column(name, pa.repeat(value, minutes.num_rows))
        found.append(minutes)
    return F.broadcast(spark.createDataFrame(pa.concat_tables(found)))


def by_minute(times: Micros, wholes: Micros) -> pa.Table:
    """Number the polls of each minute.

    Args:
        times: times of all polls, sorted, distinct.
        wholes: times of those that are whole.

    Returns:
        One row per minute, from early enough for a sample to hold until the first poll up to the last one: `minute`;
            `first`, `end`: numbers of polls before it and before its end; `times`: its polls; `wholes`: its whole
            polls; `later`: the first whole poll after it, or null.
    """
    if times.size:
        edges = np.arange(_floor(times[0]) - _HOLD_MINUTES_MICROS, _floor(times[-1]) + 2 * MINUTE, MINUTE)
    else:
        edges = np.zeros(1, np.int64)
    polled, seen = np.searchsorted(times, edges), np.searchsorted(wholes, edges)
    # The number of polls before the end is the index of the first one after it.
    later = pa.array(wholes, pa.int64()).take(pa.array(seen[1:], mask=seen[1:] == wholes.size))
    return pa.table(
        {
            "minute": edges[:-1],
            "first": polled[:-1],
            "end": polled[1:],
            "times": pa.ListArray.from_arrays(pa.array(polled, pa.int32()), pa.array(times, pa.int64())),
            "wholes": pa.ListArray.from_arrays(pa.array(seen, pa.int32()), pa.array(wholes, pa.int64())),
            "later": later,
        }
    )


def _floor(moment: np.int64) -> np.int64:
    return moment - moment % MINUTE


def hold_until(samples: DataFrame, minutes: DataFrame, by: Sequence[str]) -> DataFrame:
    """Samples with the time until which they hold, and the numbers of the polls at which they do.

    Args:
        samples: `at`, `next` (time of the next sample of the same object, or null), `gone`, and more.
        minutes: made by `number_polls`.
        by: its scope, and `minute`.

    Returns:
        Samples with `until`; `low`, `high`: numbers of polls up to `at`, and before `until`. For times outside all
            minutes these are 0 and very large, so that no minute in between counts too many polls.
    """
    then = "array_min(filter(wholes, whole -> whole > at))"
    until = f"least(at + {_HOLD_MICROS}, next, coalesce({then}, later))"
    low = "first + size(filter(times, poll -> poll <= at))"
    high = "first + size(filter(times, poll -> poll < until))"
    columns = [*samples.columns, "low", "until"]
    found = samples.selectExpr("*", _minute("at")).join(minutes, [*by], "left")
    found = found.selectExpr(*samples.columns, f"coalesce({low}, 0) AS low", f"if(gone, at, {until}) AS until")
    found = found.selectExpr("*", _minute("until")).join(minutes, [*by], "left")
    return found.selectExpr(*columns, f"coalesce({high}, {_NO_MINUTE}) AS high")


def count_polls_per_minute(spread: DataFrame, minutes: DataFrame, by: Sequence[str]) -> DataFrame:
    """Samples by `minute`, with `polls`: the number of polls of this minute at which each holds, including its own."""
    later = "greatest(least(high, end) - greatest(low, first), 0)"
    own = f"if(NOT gone AND at >= minute AND at < minute + {MINUTE}, 1, 0)"
    found = spread.join(minutes, [*by], "left")
    # In minutes before its own, a sample does not hold: they only contain its increases.
    none = f"first IS NULL OR minute + {MINUTE} <= at"
    return found.selectExpr(*spread.columns, f"if({none}, 0, {later}) + {own} AS polls")


def _minute(time: str) -> str:
    return f"{time} - {time} % {MINUTE} AS minute"
