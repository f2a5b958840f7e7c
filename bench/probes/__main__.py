"""`python -m bench.probes [--json]`: the short form of all probe benchmarks, each with its table."""

import sys

from bench.bench import run_all
from bench.probes import ceiling, cost, kills, perftest, slow_disk, stall, wire

BENCHES = (wire.BENCH, perftest.BENCH, slow_disk.BENCH, stall.BENCH, ceiling.BENCH, cost.BENCH, kills.BENCH)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
