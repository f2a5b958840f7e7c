"""One `run` in a process of its own, for `bench.pipeline.executors`.

`python -m bench.pipeline.executor_job LANDING ROLLUPS MASTER HOW AT_ONCE`: HOW is `executors`, or `driver` to collect
all rows in the driver; AT_ONCE is how many clusters are worked on side by side. It prints the seconds without the start
of Java.
"""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

from ackscope.clock import SystemClock
from pipeline import downsample, executor_writes, jobs, side_by_side
from pipeline.session import spark_session


def main(landing: str, rollups: str, master: str, how: str, at_once: str) -> None:
    """Roll up to minutes, hours and days, and print what it took."""
    if how == "driver":
        executor_writes.COLLECTED_ROWS = executor_writes.COLLECTED_ROWS_IN_CLUSTER = sys.maxsize
    side_by_side._MOST = int(at_once)  # noqa: SLF001  the product has no option for what only a bench limits
    clock = SystemClock()
    with spark_session(master) as spark:
        # The first job waits for the executors.
        spark.range(1000).repartition(4).count()
        began = clock.now()
        summary = jobs.run(Path(landing), Path(rollups), lambda: nullcontext(spark), clock, minutes_only=True)
        rolled = jobs.Rollups(Path(rollups))

        def coarse(cluster: str) -> None:
            downsample.refresh(spark, rolled, cluster)

        side_by_side.side_by_side(spark, rolled.clusters(), coarse)
        seconds = clock.now().since(began)
    print(json.dumps({"seconds": seconds, "rows": sum(rolled.row_counts().values()), "landing": summary.landing_rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
