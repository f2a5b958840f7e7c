"""`python -m bench.exporter [--json]`: every benchmark of the exporter in a row, kept short, each with its table."""

import sys

from bench.exporter import dashboards, growth, hung, limit, peers, soak

BENCHES = (peers.BENCH, limit.BENCH, growth.BENCH, hung.BENCH, dashboards.BENCH, soak.BENCH)


def main() -> int:
    """Run them; the exit code is the worst of theirs. One that lacks a part does not keep the others from running."""
    worst = 0
    for bench in BENCHES:
        worst = max(worst, bench.main([*bench.short, *sys.argv[1:]]))
        print(flush=True)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
