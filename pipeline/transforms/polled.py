"""Polls by number, so that how many of them lie between two moments is a difference.

Where a poll stands among the others is looked up in its minute: what a row costs does not grow with how many polls
there are, and Spark generates code for all that is done once a minute and object.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT

Micros = npt.NDArray[np.int64]
"""Microseconds since 1970, as all times here."""

MINUTE = 60_000_000

_HOLD_MICROS = round(HEARTBEAT * 1_000_000)
_HOLD_MINUTES_MICROS = -(-_HOLD_MICROS // MINUTE) * MINUTE
"""Whole minutes, so long before a poll that no sample before them holds at it."""

_NO_MINUTE = 1 << 62


def number_polls(polls: DataFrame) -> DataFrame:
    """The polls of each minute (`by_minute`), for every task; they are few, and read at once.

    Args:
        polls: `at`, and `whole`: what has no row at this one was not there.
    """
    rows = polls.toArrow()
    times, wholes = (np.unique(held["at"].to_numpy()) for held in (rows, rows.filter(pc.field("whole"))))
    return F.broadcast(polls.sparkSession.createDataFrame(by_minute(times, wholes)))


def by_minute(times: Micros, wholes: Micros) -> pa.Table:
    """How many polls were before each minute, and before its end.

    Args:
        times: of all polls, in order, each once.
        wholes: of those that are whole.

    Returns:
        One row a minute up to the last poll, from so long before the first one that a sample can hold until it:
        `minute`; `first`, `end`: numbers of polls before it and before its end; `times`: those of it; `wholes`: those
        of it that are whole; `later`: the first whole one after it, or null.
    """
    if times.size:
        edges = np.arange(_floor(times[0]) - _HOLD_MINUTES_MICROS, _floor(times[-1]) + 2 * MINUTE, MINUTE)
    else:
        edges = np.zeros(1, np.int64)
    polled, seen = np.searchsorted(times, edges), np.searchsorted(wholes, edges)
    # As an index, the number of those before the end is that of the first one after it.
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


def hold_until(samples: DataFrame, minutes: DataFrame) -> DataFrame:
    """Samples with when they hold no more, and between which polls they do.

    Args:
        samples: `at`, `next`: when the next one of the same object came, or null, `gone`, and more.
        minutes: made by `numbered`.

    Returns:
        With `until`; `low`, `high`: numbers of polls up to `at`, and before `until`; of a moment in no minute of these,
        none and very many: no minute between the two is counted too much.
    """
    then = "array_min(filter(wholes, whole -> whole > at))"
    until = f"least(at + {_HOLD_MICROS}, next, coalesce({then}, later))"
    low = "first + size(filter(times, poll -> poll <= at))"
    high = "first + size(filter(times, poll -> poll < until))"
    columns = [*samples.columns, "low", "until"]
    found = samples.selectExpr("*", _minute("at")).join(minutes, "minute", "left")
    found = found.selectExpr(*samples.columns, f"coalesce({low}, 0) AS low", f"if(gone, at, {until}) AS until")
    found = found.selectExpr("*", _minute("until")).join(minutes, "minute", "left")
    return found.selectExpr(*columns, f"coalesce({high}, {_NO_MINUTE}) AS high")


def count_polls_per_minute(spread: DataFrame, minutes: DataFrame) -> DataFrame:
    """Samples by `minute`, with `polls`: at how many of this minute each holds, its own and those that follow."""
    later = "greatest(least(high, end) - greatest(low, first), 0)"
    own = f"if(NOT gone AND at >= minute AND at < minute + {MINUTE}, 1, 0)"
    found = spread.join(minutes, "minute", "left")
    # Minutes before its own are those of its increases alone.
    none = f"first IS NULL OR minute + {MINUTE} <= at"
    return found.selectExpr(*spread.columns, f"if({none}, 0, {later}) + {own} AS polls")


def _minute(time: str) -> str:
    return f"{time} - {time} % {MINUTE} AS minute"
