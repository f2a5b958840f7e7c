"""`python -m bench.chaos [--json]`: the short form, ten minutes."""

import sys

from bench.bench import run_all
from bench.chaos import hour

if __name__ == "__main__":
    raise SystemExit(run_all((hour.BENCH,), sys.argv[1:]))
