"""`python -m bench.diagnosis [--json]`: the short form of all diagnosis benchmarks, each with its table."""

import sys

from bench.bench import run_all
from bench.diagnosis import age, decoys, faults, size

BENCHES = (size.BENCH, age.BENCH, decoys.BENCH, faults.BENCH)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
