"""A process that polls the rollups and records every inconsistent state.

    python -m bench.pipeline.watching ROLLUPS CLUSTER

It ends on SIGTERM and prints one JSON document: the number of polls, the states seen, and the problems.
"""

import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from ackscope.arrow_files import parquet_file
from ackscope.errors import DataError
from ackscope.manifest import DataFile, Manifest, read
from ackscope.object_path import ObjectPath, Place, place
from ackscope.tables import BURSTS_1M, HOURS, LATENCY_1M, OUTCOMES_1M, POLLS_1M, ROLLUPS, STEPS_1M
from ackscope.tables.arrow import arrow_schema
from bench.pipeline.feeding import BURSTS, MESSAGES, POLLS, STEPS

# Table -> counting column, and how much each landing file adds to it. A sum that is not a multiple shows half a file.
COUNTED = {
    OUTCOMES_1M.name: ("messages", MESSAGES),
    BURSTS_1M.name: ("bursts", BURSTS),
    STEPS_1M.name: ("attempts", STEPS),
    POLLS_1M.name: ("reads", POLLS),
}

# Seconds between two looks; in a bucket each is a request.
_EVERY, _EVERY_IN_BUCKET = 0.05, 0.3
_TRIES = 20


class RollupWatcher:
    """States and problems so far; each `look` checks one state."""

    def __init__(self, root: Place, cluster: str) -> None:
        self.looks = 0
        self.states = 0
        self.again = 0
        self.problems: Counter[str] = Counter()
        self._root, self._cluster = root, cluster
        self._number = -1
        self._sums: dict[str, int] = {}

    def look(self) -> None:
        """Read the manifest and, if it is new, check everything in it."""
        self.looks += 1
        for _ in range(_TRIES):
            try:
                manifest = read(self._root, self._cluster)
                if manifest.number == self._number:
                    return
                self._judge(manifest)
            except FileNotFoundError:
                # Possible if the reader was slow: there is a newer manifest by now.
                self.again += 1
            except (DataError, OSError, pa.ArrowException) as error:
                self.problems[f"{type(error).__name__}: {error}"[:200]] += 1
                return
            else:
                return
        self.problems["a file that the manifest names is not there"] += 1

    def _judge(self, manifest: Manifest) -> None:
        tables = {name: self._rows(manifest, name) for name in (LATENCY_1M.name, *COUNTED)}
        if manifest.number < self._number:
            self.problems["the manifest went back"] += 1
        self._number = manifest.number
        self.states += 1
        for name, (column, rows) in COUNTED.items():
            total = pc.sum(tables[name][column]).as_py() or 0
            if total % rows:
                self.problems[f"{name}: {column} are {total}, files have {rows}: one was half there"] += 1
            if total < self._sums.get(name, 0):
                self.problems[f"{name}: {column} fell from {self._sums[name]} to {total}"] += 1
            self._sums[name] = total
        sent = tables[LATENCY_1M.name].filter(pc.field("measure") == "send_delay")
        if _by_minute(sent, "count") != _by_minute(tables[OUTCOMES_1M.name], "messages"):
            self.problems["latency_1m and outcomes_1m tell of different messages"] += 1
        self._judge_hours(manifest, tables[OUTCOMES_1M.name])

    def _judge_hours(self, manifest: Manifest, minutes: pa.Table) -> None:
        """Check that each hour made from the current minutes has their sum."""
        hours = HOURS[OUTCOMES_1M.name]
        parts = {hour: text for it in manifest.files_for(OUTCOMES_1M.name) for hour, text in it.parts.items()}
        made = {hour: text for it in manifest.files_for(hours.name) for hour, text in it.made_of.items()}
        sums = _by_hour(minutes, "minute")
        for hour, found in _by_hour(self._rows(manifest, hours.name), "hour").items():
            if made.get(str(hour)) == parts.get(str(hour)) and sums.get(hour) != found:
                self.problems[f"hour {hour} has {found} messages, its minutes {sums.get(hour)}"] += 1

    def _rows(self, manifest: Manifest, name: str) -> pa.Table:
        found = [self._read(it) for it in manifest.files_for(name)]
        return pa.concat_tables(found) if found else arrow_schema(ROLLUPS[name]).empty_table()

    def _read(self, it: DataFile) -> pa.Table:
        with parquet_file(self._root / it.path) as file:
            rows = file.read()
        if rows.num_rows != it.rows:
            raise DataError(f"{it.path} has {rows.num_rows} rows, the manifest says {it.rows}")
        return rows


def _by_minute(rows: pa.Table, column: str) -> dict[Any, int]:
    keys = ["minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode"]
    found = rows.group_by(keys).aggregate([(column, "sum")]).to_pylist()
    return {tuple(row[key] for key in keys): row[f"{column}_sum"] for row in found}


def _by_hour(rows: pa.Table, time_column: str) -> dict[int, int]:
    sums: dict[int, int] = {}
    for moment, messages in zip(rows[time_column].to_pylist(), rows["messages"].to_pylist(), strict=True):
        hour = int(moment.timestamp()) // 3600
        sums[hour] = sums.get(hour, 0) + messages
    return sums


def main(words: Sequence[str]) -> int:
    """Poll until SIGTERM."""
    root, stop_requested = place(words[0]), list[bool]()
    watcher, pause = RollupWatcher(root, words[1]), _EVERY_IN_BUCKET if isinstance(root, ObjectPath) else _EVERY
    signal.signal(signal.SIGTERM, lambda *_: stop_requested.append(True))
    while not stop_requested:
        watcher.look()
        time.sleep(pause)
    watcher.look()
    document = {
        "looks": watcher.looks,
        "states": watcher.states,
        "again": watcher.again,
        "problems": dict(watcher.problems.most_common(20)),
    }
    sys.stdout.buffer.write(orjson.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
