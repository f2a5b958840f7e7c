"""Reading the configuration again while everything runs, and what came of it."""

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from ackscope.clock import Clock
from ackscope.errors import AckscopeError
from ackscope.log import redact
from exporter.exposition.live.reloads import ReloadStatus
from exporter.settings import ExporterSettings

log = logging.getLogger(__name__)


class ReloadResult(NamedTuple):
    """What came of one reload, and the line that tells it."""

    ok: bool
    line: str


class Reloader:
    """Reloads one at a time, whoever asks.

    Args:
        reread: reads and checks the file again.
        apply: changes over to the settings, or raises an AckscopeError and has changed nothing; returns what it did.
        clock: says when.
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
        """How the last one went; that of the start counts as a good one."""
        return self._status

    def reload(self) -> ReloadResult:
        """Read the file and go by it; where it is wrong, the settings before it stay."""
        with self._lock:
            if self._closed:
                return ReloadResult(ok=False, line="not reloaded: the exporter is stopping")
            before = self._status
            try:
                done = self._apply(self._reread())
            except AckscopeError as error:
                line = redact(f"not reloaded, the settings before stay: {error}")
                log.error("%s", line)  # noqa: TRY400  told in one line
            except Exception:
                # The boundary: a defect of ours must not end what runs; how far it came nobody can tell.
                line = "not reloaded as a whole, by a fault of ackscope; see its log, and restart it"
                log.exception("%s", line)
            else:
                log.info("reloaded: %s", done)
                at, successes = self._clock.now().wall, before.successes + 1
                self._status = before._replace(successful=True, at=at, successes=successes)
                return ReloadResult(ok=True, line=f"reloaded: {done}")
            self._status = before._replace(successful=False, failures=before.failures + 1)
            return ReloadResult(ok=False, line=line)

    def close(self, seconds: float) -> None:
        """Reload no more; waits for one that is under way, so long."""
        self._closed = True
        if self._lock.acquire(timeout=seconds):
            self._lock.release()
