"""Supervises the probe process: one child for all probes, so that the work of the exporter cannot delay them.

A child that exits is restarted with increasing delay. A child without output is killed first. Each line of output
becomes a batch of records.
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
from ackscope.log import get_logger
from exporter.exposition.live.process import SupervisedProcess
from probes.ipc import RecordBatch, decode

log = get_logger(__name__)
child_log = get_logger("exporter.probes_host.process.child")

COMMAND = (sys.executable, "-m", "probes.child")

FIRST_BACKOFF, LAST_BACKOFF = 1.0, 30.0
HEALTHY_SECONDS = 60.0
"""Seconds of uptime after which the restart delay is reset."""
SILENCE_SECONDS = 30.0
"""Seconds without output after which the child counts as hung; it writes at least once a second."""
_LOG_LINE = re.compile(r"ts=\S+ level=(?P<level>debug|info|warning|error|critical) (?P<fields>logger=.*)")
_LOG_FIELD = re.compile(r'(?P<key>[\w.]+)=(?P<value>"(?:[^"\\]|\\.)*"|\S*)')
_LOOK = 0.5
_SWEEP, _END = 3.0, 1.0
"""Seconds that the child gets to clean up after its stdin is closed, and to exit after SIGTERM."""


@dataclass(frozen=True, slots=True)
class SupervisorHooks:
    """Callbacks for reports of the child. They are called from the thread that reads its output.

    Attributes:
        on_batch: receives the records of one line.
        on_start: called when a new child has started, whose totals count from zero.
    """

    on_batch: Callable[[RecordBatch], None]
    on_start: Callable[[], None]


class ProbeSupervisor:
    """Supervises the probe process.

    Args:
        document: line with the targets of the child. It holds credentials and only goes through a pipe.
        hooks: receive what the child reports.
        clock: for ages and backoff.
        command: command to run; it speaks the protocol of `probes.ipc`.
    """

    def __init__(self, document: bytes, hooks: SupervisorHooks, clock: Clock, command: Sequence[str] = COMMAND) -> None:
        self._document, self._hooks, self._clock, self._command = document, hooks, clock, tuple(command)
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = self._bad_lines = 0
        self._last_line: Instant | None = None
        self._thread = threading.Thread(target=self._supervise, name="probe-process", daemon=True)

    def start(self) -> None:
        """Start supervising."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the child: close its stdin, then SIGTERM, then SIGKILL, each after a grace period."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_SWEEP + 2 * _END)

    @property
    def pid(self) -> int | None:
        """Process id of the child; None if there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def status(self) -> SupervisedProcess:
        """Current status."""
        last_line = self._last_line
        return SupervisedProcess(
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
            log.warning("restarting the probe process", seconds=backoff)
            self._stopped.wait(backoff)
            backoff = min(2 * backoff, LAST_BACKOFF)

    def _run(self) -> None:
        """Run one child from start to exit."""
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal must reach only this process, which then stops the child in order.
                start_new_session=True,
            )
        except OSError as error:
            log.error("cannot start the probe process", error=error.strerror)  # noqa: TRY400  one line, no traceback
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
            log.warning("the probe process exited", reason=_how(process.returncode))

    def _send_document(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None:
            return
        try:
            process.stdin.write(self._document)
            process.stdin.flush()
        except OSError:
            log.debug("the probe process exited before it got its targets")

    def _watch(self, process: subprocess.Popen[bytes], begun: Instant) -> None:
        """Return when the child has exited, must stop, or is silent for too long."""
        while process.poll() is None and not self._stopped.wait(_LOOK):
            last_line = self._last_line
            last = last_line if last_line is not None and last_line.since(begun) > 0 else begun
            if self._clock.now().since(last) > SILENCE_SECONDS:
                log.error("the probe process is silent; killing it", seconds=SILENCE_SECONDS)
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
                log.warning("unreadable line from the probe process", error=str(error))
                continue
            self._guarded(partial(self._hooks.on_batch, batch))

    @staticmethod
    def _guarded(hook: Callable[[], None]) -> None:
        try:
            hook()
        except Exception:  # Boundary of this thread: a defect in a sink loses one batch and does not stop later ones.
            log.exception("processing output of the probe process failed")


def _pass_on(lines: IO[bytes]) -> None:
    """Log the lines of the child at their own level. Lines in another format, such as a traceback, stay as they are."""
    for line in lines:
        text = line.decode(errors="replace").rstrip()
        found = _LOG_LINE.fullmatch(text)
        if found is None:
            child_log.info(text)
            continue
        fields = {it["key"]: _unquoted(it["value"]) for it in _LOG_FIELD.finditer(found["fields"])}
        event, source = fields.pop("msg", ""), fields.pop("logger", "")
        child_log.log(logging.getLevelNamesMapping()[found["level"].upper()], event, source=source, **fields)


def _unquoted(value: str) -> str:
    """Return a logfmt value without its quotes."""
    return value[1:-1].replace("\\n", "\n").replace('\\"', '"') if value.startswith('"') else value


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the child and wait. Closing its stdin first lets it clean up on the broker."""
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:
            log.debug("the probe process had closed its stdin")
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
