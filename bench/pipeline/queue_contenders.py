"""The minutes of queues by DuckDB, Polars or pandas; the twin of `contenders.py`, by the same protocol.

{"windows": [{"start", "end", "queue_samples", "poll_samples"}], "to"} -> {"files": {"queues_1m": [...]}}: a file a
window, of the columns of `QUEUES_1M`. Each engine does it as its users would; of rows that share a key, any one stays.
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
    """Answer until stdin ends."""
    rollup = ENGINES[sys.argv[1]]()

    def answer(request: dict[str, Any], to: Path) -> dict[str, Any]:
        files = {window["start"]: to / f"{QUEUES_1M.name}.{window['start']}.parquet" for window in request["windows"]}
        for window in request["windows"]:
            rollup(window, files[window["start"]])
        return {"files": {QUEUES_1M.name: [str(path) for path in files.values()]}}

    serve(answer)


if __name__ == "__main__":
    main()
