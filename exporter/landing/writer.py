"""The landing writer: a bounded buffer of blocks, flushed to complete, durable files every few seconds.

On a slow disk the buffer grows to at most `buffer_rows`; beyond that the oldest rows are dropped and counted.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from ackscope.clock import Clock, Instant
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, Place
from ackscope.tables import LANDING, Table
from exporter.exposition.live.landing import LandingCounts
from exporter.landing.blocks import Block, BlockKey, join
from exporter.landing.files import LandingFiles
from exporter.landing.settings import LandingSettings
from exporter.landing.upload import Uploader

log = get_logger(__name__)

_BLOCKS = 5_000
"""Limit of buffered blocks: even a block with few rows uses memory."""

_EXPIRE_SECONDS, _LOOK_SECONDS = 60.0, 3600.0
"""Interval of expiry, and of scanning the directory for its size."""

_DOUBT_SECONDS = 3600.0
"""After the wall clock was set, nothing is removed for its age for so long: it may be set back."""

_MISFITS = (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions raised by objects that do not fit their table."""


class LandingWriter:
    """Buffers and writes blocks. Thread-safe.

    Args:
        directory: root of the landing tables, or a prefix of a bucket; then files are written to the spool first.
        settings: intervals and limits.
        clock: names the files.
    """

    def __init__(self, directory: Place, settings: LandingSettings, clock: Clock) -> None:
        self._uploader: Uploader | None = None
        if isinstance(directory, ObjectPath):
            spool = settings.spool or Path("spool")
            self._uploader = Uploader(spool, directory, settings.spool_bytes, clock)
            directory = spool
        self._directory, self._settings, self._clock = directory, settings, clock
        self._files = LandingFiles(directory)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._buffer: list[Block] = []
        self._buffered = 0
        self._rows = dict.fromkeys(LANDING, 0)
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._defects: Counter[str] = Counter()
        self._written_files = self._written_bytes = self._errors = 0
        self._expired_files = self._expired_bytes = 0
        self._written_at: Instant | None = None
        self._expired_at: Instant | None = None
        self._looked_at: Instant | None = None
        self._set_at: Instant | None = None
        self._trouble: str | None = None
        self._lost, self._drop_count = False, 0
        self._unremoved: str | None = None
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()
        if self._uploader is not None:
            self._uploader.start()

    def stop(self, timeout: float = 3.0) -> None:
        """Write buffered rows and stop. Rows that are not written within `timeout` seconds are lost."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._uploader is not None:
            self._uploader.stop(timeout)

    def apply(self, settings: LandingSettings) -> None:
        """Apply new settings; the directory and the spool stay."""
        self._settings = settings
        if self._uploader is not None:
            self._uploader.max_bytes = settings.spool_bytes

    def add(self, blocks: Iterable[Block]) -> None:
        """Buffer rows; returns at once."""
        with self._lock:
            for block in blocks:
                self._buffer.append(block)
                self._buffered += block.rows
            self._bound()
            # Do not wake the thread early while the disk fails: the next attempt waits for the interval.
            full = self._buffered >= self._settings.file_rows and self._trouble is None
        if full:
            self._wake.set()

    @property
    def drop_count(self) -> int:
        """Number of times that writing resumed after dropped rows. Tables of changes must be resent each time."""
        return self._drop_count

    def count_dropped(self, table: Table, rows: int) -> None:
        """Count rows omitted because of a limit."""
        if rows:
            with self._lock:
                self._dropped[table.name, "cap"] += rows

    def defect(self, table: Table) -> int:
        """Count a snapshot whose rows could not be created. Returns the total for the table."""
        with self._lock:
            self._defects[table.name] += 1
            return self._defects[table.name]

    def counts(self) -> LandingCounts:
        """Counters since startup."""
        upload = None if self._uploader is None else self._uploader.counts()
        spool = {} if upload is None else {(table, "spool"): rows for table, rows in upload.dropped.items()}
        with self._lock:
            return LandingCounts(
                uploaded_files=None if upload is None else upload.files,
                upload_errors=None if upload is None else upload.errors,
                spooled_bytes=None if upload is None else upload.spooled_bytes,
                upload_lag=None if upload is None else upload.lag,
                rows=dict(self._rows),
                files=self._written_files,
                written=self._written_bytes,
                errors=self._errors,
                defects=dict(self._defects),
                dropped=dict(self._dropped) | spool,
                buffered=self._buffered,
                folder_bytes=self._files.folder_bytes,
                expired_files=self._expired_files,
                expired_bytes=self._expired_bytes,
                last_write_age=None if self._written_at is None else self._clock.now().since(self._written_at),
            )

    def flush(self) -> None:
        """Write all buffered rows; those that fail stay buffered. Then remove expired files."""
        with self._writing:
            with self._lock:
                pending, self._buffer, self._buffered = self._buffer, [], 0
            groups: dict[BlockKey, list[Block]] = defaultdict(list)
            for block in pending:
                groups[block.key].append(block)
            troubles = {key: trouble for key, blocks in groups.items() if (trouble := self._attempt(key, blocks))}
            self._put_back([groups[key] for key in troubles])
            if groups:
                self._log_error(next(iter(troubles.values()), None))
            if not self._stopped.is_set():
                self._expire(self._clock.now())

    def _attempt(self, key: BlockKey, blocks: list[Block]) -> str | None:
        """Write one file. Returns the error of the disk, if any. Blocks that do not fit are removed from `blocks`."""
        blocks[:] = [block for block in blocks if self._fits(block)]
        rows = sum(block.rows for block in blocks)
        if not rows:
            return None
        try:
            now = self._clock.now()
            size = self._files.write(key.folder, join(blocks), now.wall)
        except OSError as error:
            with self._lock:
                self._errors += 1
            return f"{self._directory}: {error.strerror or error}"
        with self._lock:
            self._written_files += 1
            self._written_bytes += size
            self._rows[key.table.name] += rows
            if self._lost:
                self._lost, self._drop_count = False, self._drop_count + 1
            self._written_at = now
        return None

    def _fits(self, block: Block) -> bool:
        """Create the columns of a block. Returns whether they fit the table; if not, retrying is useless."""
        try:
            block.arrow()
        except _MISFITS:
            log.exception("rows do not fit their table; dropped", table=block.key.table.name)
            with self._lock:
                self._errors += 1
                self._dropped[block.key.table.name, "contract"] += block.rows
            return False
        return True

    def _put_back(self, failed: list[list[Block]]) -> None:
        """Put failed blocks back at the front of the buffer; new blocks of a key are merged.

        Failed blocks become columns, so that they do not keep the original objects alive.
        """
        folder_bytes = [block for blocks in failed for block in blocks if block.retried]
        for blocks in failed:
            fresh = [block for block in blocks if not block.retried]
            if fresh:
                folder_bytes.append(Block(fresh[0].key, sum(block.rows for block in fresh), None, join(fresh)))
        with self._lock:
            self._buffer[:0] = sorted(folder_bytes, key=lambda block: block.number)
            self._buffered = sum(block.rows for block in self._buffer)
            self._bound()

    def _bound(self) -> None:
        """Drop the oldest rows beyond the limit, counted by table."""
        excess = self._buffered - self._settings.buffer_rows
        while self._buffer and (excess > 0 or len(self._buffer) > _BLOCKS):
            oldest = self._buffer[0]
            rows = min(excess, oldest.rows) if excess > 0 else oldest.rows
            if rows == oldest.rows:
                del self._buffer[0]
            else:
                self._buffer[0] = oldest.without_oldest(rows)
            self._dropped[oldest.key.table.name, "buffer"] += rows
            self._lost = True
            self._buffered -= rows
            excess -= rows

    def _expire(self, now: Instant) -> None:
        """Remove files that are too old or too large in total, once a minute."""
        if self._expired_at is not None and now.since(self._expired_at) < _EXPIRE_SECONDS:
            return
        if self._uploader is not None:
            # The spool has its own bound; what is in the bucket expires by `ackscope pipeline expire`.
            return
        look = self._looked_at is None or now.since(self._looked_at) >= _LOOK_SECONDS
        if look:
            self._looked_at = now
            self._files.sweep(now.wall)
        if self._expired_at is not None and now.wall_clock_step(self._expired_at):
            self._set_at = now
        self._expired_at = now
        doubtful = self._set_at is not None and now.since(self._set_at) < _DOUBT_SECONDS
        max_age = now.wall if doubtful else self._settings.max_age
        expired = self._files.expire(now.wall, self._settings.max_bytes, max_age, look=look)
        with self._lock:
            self._expired_files += expired.files
            self._expired_bytes += expired.bytes
            self._errors += expired.errors
        if expired.trouble is not None and self._unremoved is None:
            log.error("old landing files cannot be removed; check their owner", error=expired.trouble)
        self._unremoved = expired.trouble

    def _log_error(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            if trouble is None:
                log.info("landing files can be written again")
            else:
                log.error("landing files cannot be written; rows are buffered", error=trouble)
        self._trouble = trouble

    def _run(self) -> None:
        last = False
        while not last:
            self._wake.wait(self._settings.rotate)
            self._wake.clear()
            last = self._stopped.is_set()
            try:
                self.flush()
            except Exception:  # Boundary of this thread: a defect loses one flush and does not stop later ones.
                log.exception("flushing landing files failed")
                with self._lock:
                    self._errors += 1
