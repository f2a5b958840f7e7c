"""Finding episodes of a cluster, from landed events and the episodes known before."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import EPISODES, FINDING_EVENTS, POLLS_1M
from pipeline.frames import read_files, read_rollups
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.storage.file_stats import MAX_AHEAD_SECONDS
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups
from pipeline.transforms.episodes import episodes

# A column with the path of the file of a row.
_PATH = "_path"


def episodes_of(spark: SparkSession, landing: Landing, rollups: Rollups, cluster: str, now: float) -> pa.Table:
    """All current episodes of a cluster: input of `Transaction.replace_table`.

    Events later than `now`, seconds since 1970, come from a wrong clock and are ignored.

    Raises:
        DataError: Spark failed although no landing file is damaged.
    """
    manifest = rollups.manifest(cluster)
    while True:
        paths = [
            path
            for partition in landing.partitions()
            if (partition.table, partition.cluster) == (FINDING_EVENTS, cluster)
            for path in landing.files(partition)
        ]
        try:
            events = read_files(spark, FINDING_EVENTS, paths, path_column=_PATH)
            polls = read_rollups(spark, rollups.root, manifest, POLLS_1M)
            known = read_rollups(spark, rollups.root, manifest, EPISODES)
            return episodes(_dated(events, now), polls, known).toArrow()
        except SPARK_ERRORS as error:
            if not landing.quarantine_damaged(FINDING_EVENTS, paths):
                folder = str(landing.root / FINDING_EVENTS.name)
                what = f"{EPISODES.name} of cluster {cluster} could not be computed from {folder}"
                raise job_failure(error, what, folder) from None


def _dated(events: DataFrame, now: float) -> DataFrame:
    """Events with a plausible date: at most a day off the date of their folder, and not in the future."""
    folder: Column = F.to_date(F.regexp_extract(_PATH, r"/date=(\d{4}-\d\d-\d\d)/", 1))
    near = F.abs(F.date_diff(F.to_date("at"), folder)) <= 1
    return events.where(near & (F.col("at") < F.timestamp_seconds(F.lit(now + MAX_AHEAD_SECONDS)))).drop(_PATH)
