"""The minutes of queues with DuckDB, Polars or pandas; the counterpart of `contenders.py`, with the same protocol.

{"windows": [{"start", "end", "queue_samples", "poll_samples"}], "to"} -> {"files": {"queues_1m": [...]}}: one file per
window, with the columns of `QUEUES_1M`. Each engine does what its users would; of rows with the same key, any one
stays.
"""

import sys
from pathlib import Path
from typing import Any

from ackscope.tables import QUEUES_1M
from bench.pipeline.contenders import serve
from bench.pipeline.queue_duckdb import duckdb
from bench.pipeline.queue_pandas import pandas
from bench.pipeline.queue_polars import polars

ENGINES = {"duckdb": duckdb, "polars": polars, "pandas": pandas}


def main() -> None:
    """Serve requests until stdin ends."""
    rollup = ENGINES[sys.argv[1]]()

    def answer(request: dict[str, Any], to: Path) -> dict[str, Any]:
        files = {window["start"]: to / f"{QUEUES_1M.name}.{window['start']}.parquet" for window in request["windows"]}
        for window in request["windows"]:
            rollup(window, files[window["start"]])
        return {"files": {QUEUES_1M.name: [str(path) for path in files.values()]}}

    serve(answer)


if __name__ == "__main__":
    main()
