"""`python -m bench.dashboard [--json]`: the short form of all dashboard benchmarks, each with its table."""

import sys

from bench.bench import run_all
from bench.dashboard import management, speed

BENCHES = (speed.BENCH, management.BENCH)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
