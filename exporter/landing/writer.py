"""Writes landing files: a bounded buffer of rows that becomes whole, durable files every few seconds.

A reader never sees half a file: it is written under a hidden name, fsynced, renamed, and its folder fsynced.
A disk that does not take them costs no more than memory for `buffer_rows`; beyond that the oldest rows go, counted.
"""

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.clock import Clock
from ackscope.tables import ACK_BURSTS, LANDING, Table
from exporter.landing.rows import Row, arrow_table
from exporter.landing.settings import LandingSettings
from exporter.live.landing import LandingCounts

log = logging.getLogger(__name__)


class _Key(NamedTuple):
    """What one file holds."""

    table: str
    cluster: str
    date: str

    @property
    def folder(self) -> str:
        return f"{self.table}/cluster={self.cluster}/date={self.date}"


class _Entry(NamedTuple):
    table: str
    row: Row

    @property
    def key(self) -> _Key:
        return _Key(self.table, self.row.cluster, self.row.date)


class LandingWriter:
    """Buffers rows and writes them; safe to feed from several threads.

    Args:
        directory: root of the landing tables.
        settings: how often, and how much to hold.
        clock: names the files.
    """

    def __init__(self, directory: Path, settings: LandingSettings, clock: Clock) -> None:
        self._directory, self._settings, self._clock = directory, settings, clock
        self._run_id, self._counter = uuid4().hex[:8], count()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._buffer: list[_Entry] = []
        self._rows = dict.fromkeys(LANDING, 0)
        self._files = self._errors = self._dropped = 0
        self._trouble: str | None = None
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)

    def start(self) -> None:
        """Begin to write what is added."""
        self._thread.start()

    def stop(self, timeout: float = 3.0) -> None:
        """Write what is left, and end; rows that the disk does not take within `timeout` seconds are lost."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        """Take rows; returns at once."""
        with self._lock:
            self._buffer.extend(_Entry(table.name, row) for row in rows)
            self._bound()
            # While the disk makes trouble, the next attempt waits its turn.
            full = len(self._buffer) >= self._settings.file_rows and self._trouble is None
        if full:
            self._wake.set()

    def counts(self) -> LandingCounts:
        """What was written and what was not, since the start."""
        with self._lock:
            return LandingCounts(
                rows=dict(self._rows),
                files=self._files,
                errors=self._errors,
                dropped=self._dropped,
                buffered=len(self._buffer),
            )

    def flush(self) -> None:
        """Write all rows that wait; what the disk does not take waits on."""
        with self._writing:
            with self._lock:
                entries, self._buffer = self._buffer, []
            groups: dict[_Key, list[Row]] = defaultdict(list)
            for entry in entries:
                groups[entry.key].append(entry.row)
            failures = {key: trouble for key, rows in groups.items() if (trouble := self._attempt(key, rows))}
            with self._lock:
                self._buffer[:0] = [entry for entry in entries if entry.key in failures]
                self._bound()
            if groups:
                self._tell(next(iter(failures.values()), None))

    def _attempt(self, key: _Key, rows: Sequence[Row]) -> str | None:
        """Write one file; answers with what the disk has against it, if anything."""
        table = LANDING[key.table]
        try:
            self._write(self._directory / key.folder, arrow_table(table, rows))
        except OSError as error:
            with self._lock:
                self._errors += 1
            return f"{self._directory}: {error.strerror or error}"
        except pa.ArrowException:
            # No later attempt can do better: a record breaks the contract of its table.
            log.exception("rows of %s do not fit their table; dropped", table.name)
            with self._lock:
                self._errors += 1
                self._dropped += len(rows)
            return None
        with self._lock:
            self._files += 1
            self._rows[table.name] += len(rows)
        return None

    def _write(self, folder: Path, table: pa.Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        moment = datetime.fromtimestamp(self._clock.now().wall, UTC).strftime("%Y%m%dT%H%M%S")
        final = folder / f"{moment}-{self._run_id}-{next(self._counter):06d}.parquet"
        hidden = folder / f".{final.name}.tmp"
        try:
            with hidden.open("wb") as sink:
                pq.write_table(table, sink)
                sink.flush()
                os.fsync(sink.fileno())
            hidden.rename(final)
            _sync_folder(folder)
        except (OSError, pa.ArrowException):
            # Nothing of this attempt may stay: its rows will be written again, or never.
            hidden.unlink(missing_ok=True)
            final.unlink(missing_ok=True)
            raise

    def _bound(self) -> None:
        excess = len(self._buffer) - self._settings.buffer_rows
        if excess > 0:
            del self._buffer[:excess]
            self._dropped += excess

    def _tell(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            if trouble is None:
                log.info("landing files are written again")
            else:
                log.error("landing files cannot be written: %s; free space or mend the folder, rows wait", trouble)
        self._trouble = trouble

    def _run(self) -> None:
        # With its first list Arrow imports pandas, where that is installed: seconds that no row should wait for.
        arrow_table(ACK_BURSTS, [])
        last = False
        while not last:
            self._wake.wait(self._settings.rotate)
            self._wake.clear()
            last = self._stopped.is_set()
            try:
                self.flush()
            except Exception:  # The boundary of this thread: a defect costs one flush, not all that follow.
                log.exception("writing landing files failed")
                with self._lock:
                    self._errors += 1


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
