"""Child processes of the demo, with one log each, readiness checks, and a stop by process id."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.cli import die_with_parent
from ackscope.errors import AckscopeError
from ackscope.log import redact
from lab.demo.cores import give_way

_TAIL_LINES = 8
_SIGN_OF_LIFE = 20.0
"""Seconds of waiting until something is printed again."""


class ServiceFailed(AckscopeError):
    """A service of the demo did not start or exited; the message holds the end of its log."""


@dataclass(slots=True)
class Service:
    """A running child process.

    Attributes:
        grace: seconds between SIGTERM and SIGKILL.
        may_end: whether it may exit by itself, as a fault does whose client the user disconnects.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    grace: float = 15.0
    may_end: bool = False

    def check(self) -> None:
        """Raise ServiceFailed if it has exited."""
        code = self.process.poll()
        if code is not None:
            raise ServiceFailed(f"{self.name} exited unexpectedly (exit code {code}); end of its log:").with_log(
                self.tail()
            )

    def tail(self) -> str:
        """Return the last lines of its log, without credentials."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return redact("\n".join(f"  {line}" for line in lines))

    def wait_until(
        self, ready: Callable[[], bool], what: str, timeout: float, waiting: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until `ready()` is true, and call `waiting()` every 20 s.

        Raises:
            ServiceFailed: the process exits first, or `timeout` seconds are over.
        """
        began = printed = time.monotonic()
        while not ready():
            self.check()
            now = time.monotonic()
            if now - began > timeout:
                problem = f"{self.name}: {what} not seen within {timeout:.0f} s; end of its log:"
                raise ServiceFailed(problem).with_log(self.tail())
            if now - printed >= _SIGN_OF_LIFE:
                printed = now
                waiting()
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop it with SIGTERM; after its grace time, send SIGKILL to its process group."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self.grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        # Each service leads its own process group, and no process of it may survive.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@dataclass(slots=True)
class Services:
    """All child processes in the order of their start; they are stopped in reverse order."""

    folder: Path
    running: list[Service] = field(default_factory=list)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        environ: Mapping[str, str] | None = None,
        grace: float = 15.0,
        *,
        stdout: int | None = None,
        cores: tuple[int, ...] = (),
        nice: int = 0,
    ) -> Service:
        """Start a child process; it ends with this process, even if this one is killed.

        Args:
            name: also the name of its log file.
            argv: the whole command.
            environ: added to our own environment.
            grace: seconds between SIGTERM and SIGKILL at the end.
            stdout: subprocess.PIPE to read its output instead of logging it.
            cores: cores that it may use; empty: all.
            nice: by how much its priority is lower than ours.
        """

        def prepare() -> None:
            die_with_parent()
            give_way(cores, nice)

        log = self.folder / f"{name}.log"
        with log.open("ab") as sink:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=sink if stdout is None else stdout,
                stderr=sink,
                env={**os.environ, **(environ or {})},
                # Ctrl-C in a terminal must reach only the demo, which stops its parts in order.
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509  single-threaded here, and the calls only ask the kernel
            )
        service = Service(name, process, log, grace)
        self.running.append(service)
        return service

    def start_python(
        self,
        name: str,
        *words: str,
        environ: Mapping[str, str] | None = None,
        grace: float = 15.0,
        stdout: int | None = None,
        cores: tuple[int, ...] = (),
        nice: int = 0,
    ) -> Service:
        """Start a Python module with the interpreter of this process."""
        argv = [sys.executable, "-m", *words]
        return self.start(name, argv, environ, grace, stdout=stdout, cores=cores, nice=nice)

    def check(self) -> None:
        """Raise ServiceFailed if a process has exited that must not."""
        for service in self.running:
            if not service.may_end:
                service.check()

    def ended(self) -> list[str]:
        """Return the names of processes that have exited and were allowed to; each is returned once."""
        found = [service for service in self.running if service.may_end and service.process.poll() is not None]
        for service in found:
            self.stop(service.name)
        return [service.name for service in found]

    def stop(self, name: str | None = None) -> None:
        """Stop one process, or all in reverse order of their start."""
        for service in reversed([item for item in self.running if name in {None, item.name}]):
            service.stop()
            self.running.remove(service)
