"""`python -m bench.probes [--json]`: every benchmark of the probes in a row, kept short, each with its table."""

import sys

from bench.probes import ceiling, cost, kills, perftest, slow_disk, stall, wire

BENCHES = (wire.BENCH, perftest.BENCH, slow_disk.BENCH, stall.BENCH, ceiling.BENCH, cost.BENCH, kills.BENCH)


def main() -> int:
    """Run them; the exit code is the worst of theirs. One that lacks a part does not keep the others from running."""
    worst = 0
    for bench in BENCHES:
        worst = max(worst, bench.main([*bench.short, *sys.argv[1:]]))
        print(flush=True)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
