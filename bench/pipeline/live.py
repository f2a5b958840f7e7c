"""A landing folder that fills as under a running exporter: one file per table every ten seconds."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import ACK_BURSTS, POLL_SAMPLES, PROBE_MESSAGES, QUEUE_SAMPLES, Table
from bench.background import BackgroundThread
from bench.pipeline.columns import ordered

# Marker queue: its ready messages are the number of its file times `DEEP`.
MARKER = "marker"

DEEP = 1_000_000
_STREAMS = ("classic", "quorum", "stream")
# Seconds: the exporter repeats the row of an idle queue within ten minutes.
_HEARTBEAT = 480.0


@dataclass(frozen=True, slots=True)
class LandingLoad:
    """The load that lands.

    Attributes:
        messages: probe messages per second, over three streams.
        queues: number of queues.
        changing: share of the queues that change from one file to the next.
        every: seconds between files.
    """

    messages: int = 2000
    queues: int = 10_000
    changing: float = 0.2
    every: float = 10.0


@dataclass(slots=True)
class LandedSet:
    """One set of files.

    Attributes:
        number: counts from 1.
        renamed: when the last file of the set was there, seconds since 1970.
        minutes: all messages of each minute since the start, including its own; by seconds since 1970.
    """

    number: int
    renamed: float
    minutes: dict[int, int] = field(default_factory=dict)


class LiveLanding(BackgroundThread):
    """Lands a past time range, then lands in real time from a thread."""

    def __init__(self, root: Path, load: LandingLoad, cluster: str = "shop", seed: int = 1) -> None:
        super().__init__("landing")
        self.landed: list[LandedSet] = []
        self._root, self._load, self._cluster = root, load, cluster
        self._dice = np.random.default_rng(seed)
        self._number = self._seq = 0
        self._totals: dict[int, int] = {}
        self._published = self._dice.integers(0, 10**6, load.queues)
        self._reported_at = np.full(load.queues, -1e18)
        self._names = pa.array([MARKER, *(f"queue-{number:05d}" for number in range(1, load.queues))])

    def past(self, start: float, end: float, sign: Callable[[float], None] = lambda _: None) -> None:
        """Land everything from `start` to `end`, seconds since 1970, as fast as possible."""
        moment = start
        while moment + self._load.every <= end:
            self._land(moment, moment + self._load.every)
            moment += self._load.every
            sign(moment)
        self._from = moment

    def _run(self) -> None:
        moment = self._from
        while not self._end.wait(max(0.0, moment + self._load.every - time.time())):
            self._land(moment, moment + self._load.every)
            moment += self._load.every

    def _land(self, start: float, end: float) -> None:
        self._number += 1
        for table, rows in self._tables(start, end):
            self._write(table, rows, end)
        self.landed.append(LandedSet(self._number, time.time(), dict(self._totals)))

    def _tables(self, start: float, end: float) -> Iterator[tuple[Table, pa.Table]]:
        yield POLL_SAMPLES, self._polls(end)
        yield QUEUE_SAMPLES, self._queues(end)
        yield ACK_BURSTS, self._bursts(start, end)
        yield PROBE_MESSAGES, self._messages(start, end)

    def _messages(self, start: float, end: float) -> pa.Table:
        count = round(self._load.messages * (end - start))
        at = start + np.arange(count) * (end - start) / count
        for minute, found in zip(*np.unique(at // 60, return_counts=True), strict=True):
            self._totals[int(minute) * 60] = self._totals.get(int(minute) * 60, 0) + int(found)
        self._totals = {minute: found for minute, found in self._totals.items() if minute > end - 300}
        streams = pa.array(_STREAMS).take(pa.array(np.arange(count) % len(_STREAMS)))
        confirm = self._dice.lognormal(-6, 0.6, count)
        seq = np.arange(self._seq, self._seq + count)
        self._seq += count
        return ordered(
            PROBE_MESSAGES,
            {
                "intended_at": _times(at),
                "probe": _same("confirm", count),
                "stream": streams,
                "queue_type": streams,
                "vhost": _same("/", count),
                "node": _same("rabbit@one", count),
                "run_id": _same("run-1", count),
                "epoch": pa.array(np.ones(count, np.int64)),
                "seq": pa.array(seq),
                "delivery_mode": pa.array(np.full(count, 2)),
                "payload_bytes": pa.array(np.full(count, 100)),
                "outcome": _same("acked", count),
                "send_delay": pa.array(self._dice.exponential(1e-4, count)),
                "confirm": pa.array(confirm),
                "response": pa.array(confirm + 1e-4),
                "multiple": pa.array(np.zeros(count, bool)),
                "group": pa.array(seq),
            },
        )

    def _bursts(self, start: float, end: float) -> pa.Table:
        count = max(1, round(self._load.messages * (end - start) / 10))
        streams = pa.array(_STREAMS).take(pa.array(np.arange(count) % len(_STREAMS)))
        ones = pa.array(np.ones(count, np.int64))
        return ordered(
            ACK_BURSTS,
            {
                "at": _times(start + np.arange(count) * (end - start) / count),
                "probe": _same("confirm", count),
                "stream": streams,
                "queue_type": streams,
                "vhost": _same("/", count),
                "node": _same("rabbit@one", count),
                "run_id": _same("run-1", count),
                "frames": ones,
                "multiple_frames": ones,
                "messages": pa.array(np.full(count, 10)),
                "interval": pa.array(self._dice.exponential(0.015, count)),
                "span": pa.array(np.zeros(count)),
            },
        )

    def _queues(self, end: float) -> pa.Table:
        load = self._load
        due = (self._dice.random(load.queues) < load.changing) | (
            end - self._reported_at > _HEARTBEAT * self._dice.random()
        )
        due[0] = True
        index = np.flatnonzero(due)
        self._reported_at[index] = end
        self._published[index] += self._dice.integers(1, 500, len(index))
        ready = self._dice.integers(0, 100, len(index))
        ready[0] = self._number * DEEP
        counted = pa.array(self._published[index])
        return ordered(
            QUEUE_SAMPLES,
            {
                "at": _times(np.full(len(index), end - 0.5)),
                "vhost": _same("/", len(index)),
                "queue": self._names.take(pa.array(index)),
                "queue_type": _same("classic", len(index)),
                "messages_ready": pa.array(ready),
                "messages_unacked": pa.array(np.zeros(len(index), np.int64)),
                "consumers": pa.array(np.ones(len(index), np.int64)),
                "publish": counted,
                "deliver": counted,
                "ack": counted,
                "gone": pa.array(np.zeros(len(index), bool)),
            },
        )

    def _polls(self, end: float) -> pa.Table:
        return ordered(
            POLL_SAMPLES,
            {
                "at": _times(np.full(1, end - 0.5)),
                "family": _same("queues", 1),
                "success": pa.array([True]),
                "took": pa.array([0.4]),
                "age": pa.array([10.0]),
                "objects": pa.array([self._load.queues]),
                "gaps": pa.array([0]),
                "whole": pa.array([self._number == 1]),
            },
        )

    def _write(self, table: Table, rows: pa.Table, end: float) -> None:
        moment = datetime.fromtimestamp(end - 0.5, UTC)
        folder = self._root / table.name / f"cluster={self._cluster}" / f"date={moment:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{moment:%Y%m%dT%H%M%S}-0123abcd-{self._number:06d}.parquet"
        hidden = folder / f".{path.name}.tmp"
        pq.write_table(rows, hidden, compression="zstd")
        hidden.rename(path)


def _times(seconds: np.ndarray) -> pa.Array:
    return pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))


def _same(text: str, count: int) -> pa.Array:
    return pa.array([text] * count, pa.string())
