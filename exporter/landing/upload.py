"""Uploads landing files from the spool, a local folder, to a bucket; while the bucket is away they wait there.

A file keeps its name, so one that is uploaded twice, after a kill, is the same object. The spool is bounded: beyond
that the oldest files are dropped and their rows counted.
"""

import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.clock import Clock, Instant
from ackscope.log import get_logger
from ackscope.object_path import ConflictError, ObjectPath, ObjectStorageError
from exporter.landing.blocks import date
from exporter.landing.files import LandingFiles

log = get_logger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds between attempts while the bucket is away: doubled after each."""

_SEND_SECONDS = 2.0
"""Seconds between looks at the spool."""


@dataclass(frozen=True, slots=True)
class UploadCounts:
    """Figures of an uploader since startup.

    Attributes:
        files: files uploaded.
        errors: attempts that failed.
        spooled_bytes: size of the files that wait.
        lag: age of the oldest of them in seconds; 0 if none waits.
        dropped: table name -> rows of files that were dropped, because the spool was full.
    """

    files: int = 0
    errors: int = 0
    spooled_bytes: int = 0
    lag: float = 0.0
    dropped: dict[str, int] = field(default_factory=dict)


class Uploader:
    """Moves the files of a spool to a bucket, the oldest first.

    Args:
        spool: the local folder.
        target: the prefix in the bucket; files have the same path below it.
        max_bytes: bound of the spool.
        clock: tells how long files wait.
    """

    def __init__(self, spool: Path, target: ObjectPath, max_bytes: int, clock: Clock) -> None:
        self.max_bytes = max_bytes
        self._root, self._target, self._clock = spool, target, clock
        self._files = LandingFiles(spool)
        self._counts, self._dropped = UploadCounts(), Counter[str]()
        # File that waits -> since when, by the monotonic clock.
        self._since: dict[Path, float] = {}
        self._looked_at = float("-inf")
        self._trouble: str | None = None
        self._is_full = False
        self._pause = _FIRST_PAUSE
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)

    def start(self) -> None:
        """Start uploading; first what an earlier exporter left in the spool."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Upload once more, and stop; what is left is uploaded at the next start."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def counts(self) -> UploadCounts:
        """Figures for metrics."""
        return replace(self._counts, dropped=dict(self._dropped))

    def send(self) -> bool:
        """Upload all files that wait; False if the bucket is away. Never more than `max_bytes` wait afterwards."""
        waiting = self._bounded(self._files.waiting())
        self._measure(waiting)
        while waiting:
            path, _ = waiting[0]
            try:
                self._put(path)
            except ObjectStorageError as error:
                self._counts = replace(self._counts, errors=self._counts.errors + 1)
                self._log_trouble(error.strerror or "unknown")
                self._measure(self._bounded(self._files.waiting()))
                return False
            except FileNotFoundError:
                log.debug("removed before it was uploaded", file=str(path))
            except OSError as error:
                self._log_trouble(f"{path}: {error.strerror or error}")
                return False
            waiting.pop(0)
            self._measure(waiting)
        self._log_trouble(None)
        return True

    def _put(self, path: Path) -> None:
        content = path.read_bytes()
        goal = self._target / path.relative_to(self._root)
        try:
            goal.write_version(content)
        except ConflictError:
            goal.write_bytes(content)
        path.unlink(missing_ok=True)
        if not path.parent.name.endswith(date(self._clock.now().wall)):
            with suppress(OSError):
                path.parent.rmdir()
        self._counts = replace(self._counts, files=self._counts.files + 1)

    def _bounded(self, waiting: list[tuple[Path, int]]) -> list[tuple[Path, int]]:
        """Drop the oldest files beyond the bound; return the others."""
        size = sum(it for _, it in waiting)
        if size <= self.max_bytes:
            if self._is_full and size <= self.max_bytes // 2:
                self._is_full = False
            return waiting
        if not self._is_full:
            log.error("spool is full; the oldest rows are dropped", spool=str(self._root), limit=self.max_bytes)
        self._is_full = True
        while waiting and size > self.max_bytes:
            path, its = waiting.pop(0)
            table = path.relative_to(self._root).parts[0]
            with suppress(OSError, pa.ArrowException):
                self._dropped[table] += pq.read_metadata(path).num_rows
            path.unlink(missing_ok=True)
            size -= its
        return waiting

    def _measure(self, waiting: list[tuple[Path, int]]) -> None:
        now = self._clock.now()
        self._since = {path: self._since.get(path, self._begin(path, now)) for path, _ in waiting}
        self._looked_at = now.mono
        lag = now.mono - min(self._since.values(), default=now.mono)
        self._counts = replace(self._counts, spooled_bytes=sum(it for _, it in waiting), lag=lag)

    def _begin(self, path: Path, now: Instant) -> float:
        """When a new file began to wait: after the last look, whatever the wall clock says."""
        age = max(0.0, now.wall - self._files.written_at(path))
        return max(now.mono - age, self._looked_at)

    def _log_trouble(self, trouble: str | None) -> None:
        """Log when the bucket is away and when it is back, not every time."""
        if trouble is not None and self._trouble is None:
            log.error("bucket cannot be reached; files wait in the spool", bucket=str(self._target), error=trouble)
        elif trouble is None and self._trouble is not None:
            log.info("bucket can be reached again; the spool is empty", bucket=str(self._target))
        self._trouble = trouble

    def _run(self) -> None:
        last = False
        while not last:
            last = self._stopped.is_set()
            try:
                sent = self.send()
            except Exception:  # Boundary of this thread: a defect does not stop later uploads.
                log.exception("uploading landing files failed")
                sent = False
            pause = _SEND_SECONDS if sent else self._pause
            self._pause = _FIRST_PAUSE if sent else min(2 * self._pause, _LONGEST_PAUSE)
            if not last:
                self._stopped.wait(pause)
