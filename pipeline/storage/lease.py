"""A lease: an object that says who may work, until when. It stands for a lock where there is none.

It saves work, and does not protect data: the manifest is replaced only in the version that was read. So clocks may
differ and processes may stop for minutes; a writer whose lease ended loses at its commit.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from ackscope.clock import SystemClock
from ackscope.log import get_logger
from ackscope.object_path import ConflictError, ObjectPath, ObjectStorageError
from pipeline.stop import StoppedError

log = get_logger(__name__)

SECONDS = 30.0
"""A lease that is not renewed for so long is free."""

RENEW_SECONDS = SECONDS / 3
"""A holder notices within so long that another writer took it."""

# Pause between attempts to take it: each is a request.
_RETRY_SECONDS = 0.5
# Of the leases that this process holds or waits for.
_tokens: set[str] = set()
# Whether its holder still lives is asked of the kernel where that is possible, so a restart need not wait.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def lease(
    path: ObjectPath, go_on: Callable[[], bool], *, wait: bool = True, lost: Callable[[], object] = lambda: None
) -> Iterator[bool]:
    """Take a lease, renew it in a thread, and release it; yield whether it was taken.

    Args:
        path: its object.
        go_on: called while waiting; False gives up.
        wait: wait until it is free; without it, yield False if it is not.
        lost: called in the thread when another writer took it.

    Raises:
        ObjectStorageError: the storage cannot be used.
        StoppedError: `go_on` returned False while waiting.
    """
    held = _Lease(path)
    is_logged = False
    while not held.take():
        if not wait:
            yield False
            return
        if not is_logged:
            is_logged = True
            # Threads of one process take turns all the time.
            (log.debug if held.is_here else log.info)("waiting for another writer", lease=str(path), owner=held.other)
        if not go_on():
            raise StoppedError
        time.sleep(_RETRY_SECONDS)
    ended = threading.Event()
    renewing = threading.Thread(target=held.keep, args=(ended, lost), name="lease", daemon=True)
    renewing.start()
    try:
        yield True
    finally:
        ended.set()
        renewing.join()
        held.release()


class _Lease:
    """One attempt to hold the lease of an object."""

    def __init__(self, path: ObjectPath) -> None:
        self.other, self.is_here = "", False
        self._path, self._token, self._version = path, uuid4().hex, ""
        _tokens.add(self._token)
        self._clock = SystemClock()
        self._seen: tuple[str, float] = ("", 0.0)

    def take(self) -> bool:
        """Whether it is ours now."""
        try:
            content, version = self._path.read_version()
        except FileNotFoundError:
            version = ""
        else:
            if not self._is_free(_document(content), version):
                return False
        try:
            self._version = self._path.write_version(self._content(SECONDS), version)
        except ConflictError:
            return False
        return True

    def keep(self, ended: threading.Event, lost: Callable[[], object]) -> None:
        """Renew it until the end; one that was lost is not taken back."""
        while not ended.wait(RENEW_SECONDS):
            try:
                self._version = self._path.write_version(self._content(SECONDS), self._version)
            except ConflictError:
                # The holder says what follows from it: it ends, or its commit fails.
                log.debug("lease lost; another writer took it", lease=str(self._path))
                lost()
                return
            except ObjectStorageError as error:
                # The job says so itself as soon as it needs the storage.
                log.debug("lease not renewed, will be retried", error=str(error))

    def release(self) -> None:
        """Make it free at once, if it is ours."""
        with suppress(ConflictError, OSError):
            self._path.write_version(self._content(0.0), self._version)
        # If that failed, this process can still take it at once.
        _tokens.discard(self._token)

    def _is_free(self, document: dict[str, Any], version: str) -> bool:
        self.is_here = document.get("pid") == os.getpid() and document.get("kernel") == _kernel()
        self.other = f"{document.get('host')}, process {document.get('pid')}"
        if document.get("seconds") == 0 or _is_dead(document):
            return True
        # Its own clock decides when it ends, and ours whether it was renewed since we first saw it.
        if version != self._seen[0]:
            self._seen = version, time.monotonic()
        is_over = float(document.get("until", 0)) + SECONDS < self._clock.now().wall
        return is_over or time.monotonic() - self._seen[1] > SECONDS

    def _content(self, seconds: float) -> bytes:
        now = self._clock.now().wall
        document = {"owner": self._token, "seconds": seconds, "until": now + seconds, "at": time.time_ns()}
        return orjson.dumps(document | _here())


def _here() -> dict[str, Any]:
    """This process, as far as another one can recognise it."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "kernel": _kernel(), "started": _started(os.getpid())}


def _is_dead(document: dict[str, Any]) -> bool:
    """Whether the holder was a process of this kernel that has ended, or a part of this process that has."""
    pid = document.get("pid")
    is_ours = bool(document.get("kernel")) and document["kernel"] == _kernel()
    if not is_ours or not isinstance(pid, int):
        return False
    return _started(pid) != document.get("started") or (pid == os.getpid() and document.get("owner") not in _tokens)


def _kernel() -> str:
    """This boot of the kernel, and the process IDs that are seen here; "" if unknown."""
    try:
        return f"{_BOOT.read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in the kernel's count; "" if there is none, or it has ended."""
    try:
        state, *values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else values[18]


def _document(content: bytes) -> dict[str, Any]:
    try:
        found: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
