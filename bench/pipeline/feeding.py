"""Landing files that keep arriving, each with rows of several hours: the input of a stream that is killed."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.object_path import ObjectPath, Place
from ackscope.tables import ACK_BURSTS, POLL_SAMPLES, PROBE_MESSAGES, PROBE_STEPS, QUEUE_SAMPLES, Table
from ackscope.tables.arrow import arrow_schema
from bench.background import BackgroundThread

Row = dict[str, Any]
# Two hours before midnight: files have rows of two dates.
START = datetime(2026, 3, 1, 22, tzinfo=UTC)

HOURS = 4
# Rows of one file, spread over all hours; no two files share a row.
MESSAGES, BURSTS, STEPS, SAMPLES, POLLS = 60, 30, 30, 8, 8


class Feeder(BackgroundThread):
    """Lands sets of files from a thread, inside a `with` block."""

    def __init__(self, root: Place, cluster: str, every: float, seed: int) -> None:
        super().__init__("landing")
        self.sets = 0
        self._root, self._cluster, self._every = root, cluster, every
        self._dice = random.Random(seed)  # noqa: S311  makes rows, guards nothing

    def _run(self) -> None:
        while not self._end.wait(self._every * self._dice.uniform(0.5, 1.5)):
            self.land()

    def land(self) -> None:
        """Land one set of files; sometimes without one of the tables, sometimes with a duplicate file."""
        self.sets += 1
        for table, rows in self._tables(self.sets):
            if self._dice.random() < 0.25:
                continue
            path = self._write(table, rows, f"set-{self.sets:06d}")
            if self._dice.random() < 0.03:
                self._copy(path)

    def _tables(self, number: int) -> Iterator[tuple[Table, list[Row]]]:
        yield POLL_SAMPLES, [self._poll(moment) for moment in self._moments(POLLS)]
        yield QUEUE_SAMPLES, [self._sample(moment) for moment in self._moments(SAMPLES)]
        yield PROBE_STEPS, [self._step(moment) for moment in self._moments(STEPS)]
        yield ACK_BURSTS, [self._burst(moment) for moment in self._moments(BURSTS)]
        yield PROBE_MESSAGES, [self._message(number, seq, it) for seq, it in enumerate(self._moments(MESSAGES))]

    def _moments(self, count: int) -> list[datetime]:
        """Return times that are evenly spread over all hours; no two are equal."""
        spread = timedelta(hours=HOURS) / count
        return [START + spread * (index + self._dice.random()) for index in range(count)]

    def _message(self, number: int, seq: int, at: datetime) -> Row:
        confirm = self._dice.lognormvariate(-6, 1)
        row = dict.fromkeys(PROBE_MESSAGES.names)
        return row | {
            "intended_at": at,
            **self._stream(),
            "epoch": 1,
            "seq": number * MESSAGES + seq,
            "delivery_mode": 2,
            "payload_bytes": 100,
            "outcome": self._dice.choice(["acked", "acked", "acked", "nacked"]),
            "send_delay": self._dice.expovariate(10_000),
            "confirm": confirm,
            "response": confirm,
        }

    def _burst(self, at: datetime) -> Row:
        counts = dict.fromkeys(("frames", "multiple_frames"), 1)
        return {
            "at": at,
            **self._stream(),
            **counts,
            "messages": self._dice.randrange(1, 50),
            "interval": self._dice.expovariate(50),
            "span": 0.0,
        }

    def _step(self, at: datetime) -> Row:
        return {
            "at": at,
            "probe": "handshake",
            "stream": "handshake",
            "vhost": "/",
            "node": "rabbit@one",
            "run_id": "run-1",
            "step": self._dice.choice(["tcp", "tls"]),
            "seconds": self._dice.expovariate(100),
            "ok": True,
            "reason": None,
        }

    def _sample(self, at: datetime) -> Row:
        row = dict.fromkeys(QUEUE_SAMPLES.names)
        return row | {
            "at": at,
            "vhost": "/",
            "queue": f"queue-{self._dice.randrange(20)}",
            "queue_type": "classic",
            "messages_ready": self._dice.randrange(1000),
            "messages_unacked": 0,
            "consumers": 1,
            "publish": self._dice.randrange(10**6),
            "gone": False,
        }

    @staticmethod
    def _poll(at: datetime) -> Row:
        row = dict.fromkeys(POLL_SAMPLES.names)
        return row | {"at": at, "family": "queues", "success": True, "took": 0.1, "gaps": 0, "whole": False}

    def _stream(self) -> Row:
        kind = self._dice.choice(["classic", "quorum"])
        return {
            "probe": "confirm",
            "stream": kind,
            "queue_type": kind,
            "vhost": "/",
            "node": "rabbit@one",
            "run_id": "run-1",
        }

    def _write(self, table: Table, rows: list[Row], name: str) -> Place:
        folder = self._root / table.name / f"cluster={self._cluster}" / f"date={START:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        content = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), content)
        return _put(folder / f"{name}.parquet", content.getvalue().to_pybytes())

    @staticmethod
    def _copy(path: Place) -> None:
        _put(path.with_name(f"{path.stem}-again.parquet"), path.read_bytes())


def _put(path: Place, content: bytes) -> Place:
    """Write a file that nobody sees in part."""
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
    else:
        hidden = path.with_name(f".{path.stem}.tmp")
        hidden.write_bytes(content)
        hidden.rename(path)
    return path
