"""`python -m bench.pipeline [--json]`: all benchmarks of the pipeline, shortened, with their tables."""

import sys

from bench.bench import run_all
from bench.pipeline import (
    backtest,
    batch,
    compaction,
    delta_live,
    executors,
    freshness,
    incidents,
    kills,
    scale,
    throughput,
)

BENCHES = (
    throughput.BENCH,
    scale.BENCH,
    incidents.BENCH,
    backtest.BENCH,
    compaction.BENCH,
    freshness.BENCH,
    kills.BENCH,
    delta_live.BENCH,
    executors.BENCH,
    batch.BENCH,
)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
