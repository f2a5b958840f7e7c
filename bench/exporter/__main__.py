"""`python -m bench.exporter [--json]`: the short form of all exporter benchmarks, each with its table."""

import sys

from bench.bench import run_all
from bench.exporter import dashboards, growth, hung, limit, peers, restarts, second_source, soak

BENCHES = (
    peers.BENCH,
    limit.BENCH,
    growth.BENCH,
    hung.BENCH,
    second_source.BENCH,
    dashboards.BENCH,
    restarts.BENCH,
    soak.BENCH,
)


if __name__ == "__main__":
    raise SystemExit(run_all(BENCHES, sys.argv[1:]))
