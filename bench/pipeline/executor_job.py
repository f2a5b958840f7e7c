"""The driver of a Spark cluster in a process of its own, for `bench.pipeline.executors`.

`python -m bench.pipeline.executor_job MASTER`: a line on stdin for each run, {"landing", "rollups", "how", "at_once"},
and a line on stdout when it is done, {"began", "ended", "rows"}, seconds since 1970. `how` is `executors`, or `driver`
to collect all rows in the driver; `at_once` is how many clusters are worked on side by side.
"""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ackscope.clock import SystemClock
from pipeline import downsample, executor_writes, jobs, side_by_side
from pipeline.session import spark_session
from pipeline.storage.rollups import Rollups


def main(master: str) -> None:
    """Serve requests until stdin ends."""
    with spark_session(master) as spark:
        # The first job waits for the executors.
        spark.range(1000).repartition(4).count()
        for line in sys.stdin:
            print(json.dumps(_run(spark, json.loads(line))), flush=True)


def _run(spark: SparkSession, request: dict[str, Any]) -> dict[str, float]:
    """Roll up to minutes, hours and days."""
    collected = sys.maxsize if request["how"] == "driver" else -1
    executor_writes.COLLECTED_ROWS = executor_writes.COLLECTED_ROWS_IN_CLUSTER = collected
    # The product has no option for what only a bench limits.
    side_by_side._MOST = side_by_side.TOGETHER = request["at_once"]  # noqa: SLF001
    clock, root = SystemClock(), Path(request["rollups"])
    began = clock.now()
    jobs.run(Path(request["landing"]), root, lambda: nullcontext(spark), clock, minutes_only=True)
    rollups = Rollups(root)
    downsample.refresh(spark, rollups, rollups.clusters())
    return {"began": began.wall, "ended": clock.now().wall, "rows": sum(rollups.row_counts().values())}


if __name__ == "__main__":
    main(sys.argv[1])
