"""The answers that the dashboard shows without Spark: one JSON document per cluster, replaced atomically."""

from typing import Any
from urllib.parse import quote

import orjson
from pyspark.sql import SparkSession

from ackscope.clock import iso
from ackscope.object_path import Place
from ackscope.ranking import FindingEpisode
from ackscope.tables import EPISODES
from pipeline.answers.answer import MAX_ROWS
from pipeline.answers.capacity import capacity
from pipeline.answers.finding import newest_data, recurrences
from pipeline.answers.rollup_reader import RollupReader
from pipeline.answers.slo import slo
from pipeline.answers.weeks import weeks
from pipeline.answers.worst import BY, worst
from pipeline.storage.durable import atomic_write, sync_folder

FOLDER = "_answers"
VERSION = 1

# The SLO on the dashboard: 99.9 % of the probe messages within 100 ms. `ask slo` takes other values.
THRESHOLD_SECONDS, TARGET = 0.1, 0.999

_DAY = 86400.0
_WEEK, _FORTNIGHT, _MONTH = 7 * _DAY, 14 * _DAY, 30 * _DAY


def answers_path(root: Place, cluster: str) -> Place:
    """The answers file of a cluster."""
    return root / FOLDER / f"{quote(cluster, safe='')}.json"


def write(spark: SparkSession, root: Place, cluster: str, now: float) -> None:
    """Answer the standing questions as of `now`, seconds since 1970, and replace the file.

    Raises:
        DataError: rollups cannot be read, or the file cannot be written.
    """
    document = answers(spark, RollupReader.of(root, cluster), now)
    path = answers_path(root, cluster)
    atomic_write(path, lambda file: file.write(orjson.dumps(document)))
    sync_folder(path.parent)


def answers(spark: SparkSession, reader: RollupReader, now: float) -> dict[str, Any]:
    """The document: `worst` by each of `BY`, `weeks`, `capacity`, `slo`, and `recurrences`."""
    return {
        "version": VERSION,
        "cluster": reader.cluster,
        "made_at": iso(now),
        "worst": {by: worst(spark, reader, by, now - _WEEK, now).document() for by in BY},
        "weeks": weeks(spark, reader, now).document(),
        "capacity": capacity(spark, reader, now - _FORTNIGHT, now).document(),
        "slo": slo(spark, reader, now - _MONTH, now, THRESHOLD_SECONDS, TARGET).document(),
        "recurrences": _recurrences(reader, now),
    }


def _recurrences(reader: RollupReader, now: float) -> dict[str, Any]:
    """Every finding of the last 30 days."""
    episodes = [FindingEpisode.of(row) for row in reader.rows(EPISODES, now - _MONTH, now)]
    data_until = newest_data(reader, now)
    rows = recurrences(episodes, now, data_until)
    return {
        "from": iso(now - _MONTH),
        "data_until": None if data_until is None else iso(data_until),
        "rows": rows[:MAX_ROWS],
        "all": len(rows),
    }
