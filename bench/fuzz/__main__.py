"""`python -m bench.fuzz [--json]`: the short form of all fuzzing targets, each with its table."""

import sys

from bench.bench import run_all
from bench.fuzz import broker, bundles, configuration, landing, prometheus, requests, sessions

BENCHES = (
    *(broker.BENCH, prometheus.BENCH, sessions.BENCH, bundles.BENCH, landing.BENCH, configuration.BENCH),
    requests.BENCH,
)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
