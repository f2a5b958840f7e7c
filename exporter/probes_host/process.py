"""Keeps the probe process alive: one child for all probes of all clusters, so that our work never stalls its clocks.

It ends: it is started again, later each time. It falls silent: it is ended first. Its lines become batches.
"""

import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

from ackscope.clock import Clock, Instant
from ackscope.errors import AckscopeError
from exporter.exposition.live.process import ProbeProcessStatus
from probes.wire import Batch, decode

log = logging.getLogger(__name__)
child_log = logging.getLogger("exporter.probes_host.process.child")

COMMAND = (sys.executable, "-m", "probes.child")

FIRST_BACKOFF, LAST_BACKOFF = 1.0, 30.0
HEALTHY_SECONDS = 60.0
"""A child that lived as long is started again soon."""
SILENCE_SECONDS = 30.0
"""It says something at least once a second; thirty times that means that it hangs."""
_LOG_LINE = re.compile(r"\S+ \S+ (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<message>.*)")
_LOOK = 0.5
_SWEEP, _END = 3.0, 1.0
"""Seconds that the child gets to sweep once its input closed, and to end after SIGTERM."""


@dataclass(frozen=True, slots=True)
class SupervisorHooks:
    """What to do with what the child says; both are called from the thread that reads it.

    Attributes:
        on_batch: takes in what one line held.
        on_start: a new child begins: totals that it reports start from zero.
    """

    on_batch: Callable[[Batch], None]
    on_start: Callable[[], None]


class ProbeSupervisor:
    """Supervises the child.

    Args:
        document: the line that tells it what to probe; it holds credentials, and goes through a pipe only.
        hooks: what to do with what it says.
        clock: for ages and backoff.
        command: what to run; it speaks the protocol of `probes.wire`.
    """

    def __init__(self, document: bytes, hooks: SupervisorHooks, clock: Clock, command: Sequence[str] = COMMAND) -> None:
        self._document, self._hooks, self._clock, self._command = document, hooks, clock, tuple(command)
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = self._bad_lines = 0
        self._last_line: Instant | None = None
        self._thread = threading.Thread(target=self._supervise, name="probe-process", daemon=True)

    def start(self) -> None:
        """Begin to supervise."""
        self._thread.start()

    def stop(self) -> None:
        """End the child: close its input, then SIGTERM, then SIGKILL, each after its grace."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_SWEEP + 2 * _END)

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def status(self) -> ProbeProcessStatus:
        """How it does."""
        last_line = self._last_line
        return ProbeProcessStatus(
            up=self.pid is not None,
            restarts=max(0, self._starts - 1),
            bad_lines=self._bad_lines,
            age_seconds=None if last_line is None else self._clock.now().since(last_line),
        )

    def _supervise(self) -> None:
        backoff = FIRST_BACKOFF
        while not self._stopped.is_set():
            started = self._clock.now()
            self._run()
            if self._stopped.is_set():
                return
            if self._clock.now().since(started) >= HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF
            log.warning("starting the probe process again in %.0f s", backoff)
            self._stopped.wait(backoff)
            backoff = min(2 * backoff, LAST_BACKOFF)

    def _run(self) -> None:
        """One life of the child, from start to its end."""
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal reaches us alone; we end the child in order.
                start_new_session=True,
            )
        except OSError as error:
            log.error("the probe process cannot be started (%s)", error.strerror)  # noqa: TRY400  told in one line
            self._starts += 1
            return
        self._starts += 1
        self._process = process
        begun = self._clock.now()
        readers = [
            threading.Thread(target=self._read, args=(process.stdout,), name="probe-lines", daemon=True),
            threading.Thread(target=_pass_on, args=(process.stderr,), name="probe-log", daemon=True),
        ]
        for reader in readers:
            reader.start()
        self._send_document(process)
        self._watch(process, begun)
        _end(process)
        for reader in readers:
            reader.join(_END)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if not self._stopped.is_set():
            log.warning("the probe process ended (%s)", _how(process.returncode))

    def _send_document(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None:
            return
        try:
            process.stdin.write(self._document)
            process.stdin.flush()
        except OSError:
            log.debug("the probe process ended before it was told what to do")

    def _watch(self, process: subprocess.Popen[bytes], begun: Instant) -> None:
        """Return when the child ended, is to end, or fell silent."""
        while process.poll() is None and not self._stopped.wait(_LOOK):
            last_line = self._last_line
            last = last_line if last_line is not None and last_line.since(begun) > 0 else begun
            if self._clock.now().since(last) > SILENCE_SECONDS:
                log.error("the probe process said nothing for %.0f s; it is ended", SILENCE_SECONDS)
                process.kill()
                return

    def _read(self, lines: IO[bytes]) -> None:
        self._guarded(self._hooks.on_start)
        for line in lines:
            self._last_line = self._clock.now()
            try:
                batch = decode(line)
            except AckscopeError as error:
                self._bad_lines += 1
                log.warning("a line of the probe process cannot be read: %s", error)
                continue
            self._guarded(partial(self._hooks.on_batch, batch))

    @staticmethod
    def _guarded(hook: Callable[[], None]) -> None:
        try:
            hook()
        except Exception:  # The boundary of this thread: a defect in one sink costs one batch, not all that follow.
            log.exception("taking in what the probe process said failed")


def _pass_on(lines: IO[bytes]) -> None:
    """Log what the child logs, at its level; what is no line of its log, such as a traceback, as it is."""
    for line in lines:
        text = line.decode(errors="replace").rstrip()
        found = _LOG_LINE.match(text)
        level = logging.getLevelNamesMapping()[found["level"]] if found else logging.INFO
        child_log.log(level, "%s", found["message"] if found else text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and wait for it: its input closes first, so that it can sweep what it made on the broker."""
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:
            log.debug("the probe process had closed its input")
    for grace, insist in ((_SWEEP, process.terminate), (_END, process.kill)):
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            insist()
        else:
            return
    process.wait()


def _how(code: int | None) -> str:
    return f"by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
