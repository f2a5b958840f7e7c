"""`python -m bench.diagnosis [--json]`: the short form of all diagnosis benchmarks, each with its table."""

import sys

from bench.bench import run_all
from bench.diagnosis import decoys, faults, mixtures, size

BENCHES = (size.BENCH, decoys.BENCH, faults.BENCH, mixtures.BENCH)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
