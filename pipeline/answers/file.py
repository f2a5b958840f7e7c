"""The answers that the page shows without Spark: one small document a cluster, replaced whole."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from pyspark.sql import SparkSession

from ackscope.clock import iso
from ackscope.ranking import FindingEpisode
from ackscope.tables import EPISODES
from pipeline.answers.answer import MOST
from pipeline.answers.capacity import capacity
from pipeline.answers.finding import newest, recurrences
from pipeline.answers.shelf import Shelf
from pipeline.answers.slo import slo
from pipeline.answers.weeks import weeks
from pipeline.answers.worst import BY, worst
from pipeline.storage.durable import put, sync

FOLDER = "_answers"
VERSION = 1

THRESHOLD, TARGET = 0.1, 0.999
"""Of the SLO on the page: 100 ms for 99.9 % of the probe messages. `ask slo` takes others."""

_DAY = 86400.0
_WEEK, _FORTNIGHT, _MONTH = 7 * _DAY, 14 * _DAY, 30 * _DAY


def place(root: Path, cluster: str) -> Path:
    """The file of a cluster's answers."""
    return root / FOLDER / f"{quote(cluster, safe='')}.json"


def write(spark: SparkSession, root: Path, cluster: str, now: float) -> None:
    """Answer the standing questions as of `now`, seconds since 1970, and replace the file.

    Raises:
        DataError: rollups cannot be read, or the file cannot be written.
    """
    document = answers(spark, Shelf.of(root, cluster), now)
    path = place(root, cluster)
    put(path, lambda file: file.write(orjson.dumps(document)))
    sync(path.parent)


def answers(spark: SparkSession, shelf: Shelf, now: float) -> dict[str, Any]:
    """The document: `worst` by each of `BY`, `weeks`, `capacity`, `slo`, and `recurrences`, as `Answer.document`."""
    return {
        "version": VERSION,
        "cluster": shelf.cluster,
        "made_at": iso(now),
        "worst": {by: worst(spark, shelf, by, now - _WEEK, now).document() for by in BY},
        "weeks": weeks(spark, shelf, now).document(),
        "capacity": capacity(spark, shelf, now - _FORTNIGHT, now).document(),
        "slo": slo(spark, shelf, now - _MONTH, now, THRESHOLD, TARGET).document(),
        "recurrences": _recurrences(shelf, now),
    }


def _recurrences(shelf: Shelf, now: float) -> dict[str, Any]:
    """Every finding of the last 30 days."""
    episodes = [FindingEpisode.of(row) for row in shelf.rows(EPISODES, now - _MONTH, now)]
    fresh = newest(shelf, now)
    rows = recurrences(episodes, now, fresh)
    return {
        "from": iso(now - _MONTH),
        "data_until": None if fresh is None else iso(fresh),
        "rows": rows[:MOST],
        "all": len(rows),
    }
