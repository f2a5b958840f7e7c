"""Reloads the configuration while everything runs."""

import threading
from collections.abc import Callable
from typing import NamedTuple

from ackscope.clock import Clock
from ackscope.errors import AckscopeError
from ackscope.log import get_logger, redact
from exporter.exposition.live.reloads import ReloadStatus
from exporter.settings import ExporterSettings

log = get_logger(__name__)


class ReloadResult(NamedTuple):
    """Result of one reload, with a one-line message."""

    ok: bool
    line: str


class Reloader:
    """Runs reloads, one at a time.

    Args:
        reread: reads and validates the file again.
        apply: applies the settings and returns a summary. If it raises an AckscopeError, it has changed nothing.
        clock: gives the times of reloads.
    """

    def __init__(
        self, reread: Callable[[], ExporterSettings], apply: Callable[[ExporterSettings], str], clock: Clock
    ) -> None:
        self._reread, self._apply, self._clock = reread, apply, clock
        self._lock = threading.Lock()
        self._closed = False
        self._status = ReloadStatus(successful=True, at=clock.now().wall)

    @property
    def status(self) -> ReloadStatus:
        """Result of the last reload. Startup counts as a successful one."""
        return self._status

    def reload(self) -> ReloadResult:
        """Read the file and apply it. If it is invalid, the current settings stay in force."""
        with self._lock:
            if self._closed:
                return ReloadResult(ok=False, line="not reloaded: the exporter is stopping")
            before = self._status
            try:
                done = self._apply(self._reread())
            except AckscopeError as error:
                line = redact(f"not reloaded, keeping the current settings: {error}")
                log.error("configuration not reloaded", answers=True, error=redact(str(error)))  # noqa: TRY400  one line
            except Exception:
                # Boundary: a defect must not stop the exporter; how much was applied is unknown.
                line = "reload failed halfway because of an ackscope bug; see the log and restart the exporter"
                log.exception("reload failed halfway; restart the exporter")
            else:
                log.info("configuration reloaded", changes=done)
                at, successes = self._clock.now().wall, before.successes + 1
                self._status = before._replace(successful=True, at=at, successes=successes)
                return ReloadResult(ok=True, line=f"reloaded: {done}")
            self._status = before._replace(successful=False, failures=before.failures + 1)
            return ReloadResult(ok=False, line=line)

    def reapply(self, change: Callable[[], str]) -> bool:
        """Make a change that does not come from the file, between reloads. Returns whether it was made.

        Args:
            change: makes it and returns a summary. If it raises an AckscopeError, it has changed nothing.
        """
        with self._lock:
            if self._closed:
                return False
            try:
                done = change()
            except AckscopeError as error:
                log.error("clusters not changed", error=redact(str(error)))  # noqa: TRY400  one line
            except Exception:
                # Boundary: as in `reload`.
                log.exception("change failed halfway; restart the exporter")
            else:
                log.info("clusters changed", changes=done)
                return True
            return False

    def close(self, seconds: float) -> None:
        """Refuse further reloads; wait up to `seconds` for one in progress."""
        self._closed = True
        if self._lock.acquire(timeout=seconds):
            self._lock.release()
