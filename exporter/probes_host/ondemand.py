"""Runs one probe now, as a child process of its own: for `/probe`, where a person or a scraper asks for it.

The child is `ackscope probe`: it makes queues for itself, reports, and sweeps them. One at a time a cluster.
"""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ackscope.clock import Clock
from ackscope.log import redact
from probes.settings import AmqpSettings, Server

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "ackscope", "probe")

LONGEST_MEASURE, LONGEST_SWEEP = 3.0, 24.0
"""Seconds to measure, and to try prefetch values, where there is time for it.

Connecting, waiting for late confirms and sweeping come on top.
"""
_SWEEP, _LOOK = 2.0, 0.1
"""Seconds that a child gets to sweep once it was interrupted, and between two looks at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandRequest:
    """What to run.

    Attributes:
        cluster: the name of a cluster that has an AMQP address.
        within: seconds after which the child is interrupted; its sweeping comes on top.
        as_json: ask for the document instead of the report for a person.
    """

    cluster: str
    probe: str
    within: float
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandRun:
    """How it went.

    Attributes:
        code: the exit code of `ackscope probe`; None where it did not end in time.
        seconds: from its start to its end.
        report: what it printed.
        log: what it logged, without credentials.
    """

    code: int | None
    seconds: float
    report: str
    log: str


class OnDemandProbes:
    """Runs one-shot probes; safe for several callers at once.

    Args:
        targets: name -> where to connect, of each cluster that has an AMQP address: nothing else is ever connected to.
        prefix: of the names of all that the probes make.
        clock: times the runs.
        command: what to run, the probe's name and options after it.
    """

    def __init__(
        self, targets: Mapping[str, AmqpSettings], prefix: str, clock: Clock, command: Sequence[str] = COMMAND
    ) -> None:
        self.targets = targets
        self._prefix, self._clock, self._command = prefix, clock, tuple(command)
        self._busy = {name: threading.Lock() for name in targets}
        self._stopped = threading.Event()

    def run(self, order: OnDemandRequest) -> OnDemandRun | None:
        """Run it and wait for its end; None where another one of this cluster is under way.

        Raises:
            ConfigError: the password file cannot be read.
        """
        busy = self._busy[order.cluster]
        if self._stopped.is_set() or not busy.acquire(blocking=False):
            return None
        try:
            return self._run(order, self.targets[order.cluster].server())
        finally:
            busy.release()

    def busy(self) -> bool:
        """Whether any run is under way."""
        return any(lock.locked() for lock in self._busy.values())

    def stop(self) -> None:
        """Interrupt what runs, and wait until it has swept and ended; nothing runs any more after that."""
        self._stopped.set()
        for busy in self._busy.values():
            if busy.acquire(timeout=2 * _SWEEP):
                busy.release()

    def _run(self, order: OnDemandRequest, server: Server) -> OnDemandRun:
        began = self._clock.now()
        process = subprocess.Popen(
            [*self._command, *cli_arguments(order, server, self._prefix)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in a terminal reaches us alone; we end the child in order.
            start_new_session=True,
        )
        late = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(process, order.within, late), name="one-shot", daemon=True)
        watcher.start()
        try:
            report, stderr = process.communicate(f"{server.address.password}\n".encode())
        finally:
            process.kill()
            watcher.join()
        if late.is_set():
            log.warning("probe %s of cluster %s did not end within %.1f s", order.probe, order.cluster, order.within)
        return OnDemandRun(
            code=None if late.is_set() else process.returncode,
            seconds=self._clock.now().since(began),
            report=report.decode(errors="replace"),
            log=redact(stderr.decode(errors="replace")),
        )

    def _watch(self, process: subprocess.Popen[bytes], within: float, late: threading.Event) -> None:
        """Interrupt the child when its time is over or we stop, so that it sweeps; then end it."""
        until = self._clock.now().mono + within
        while process.poll() is None:
            if self._stopped.wait(_LOOK) or self._clock.now().mono >= until:
                late.set()
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_SWEEP)
                except subprocess.TimeoutExpired:
                    process.kill()
                return


def cli_arguments(order: OnDemandRequest, server: Server, prefix: str) -> list[str]:
    """Name and options of the probe; the password is no part of them: any user of the machine could read it."""
    address = server.address
    url = f"{address.scheme}://{quote(address.username, safe='')}@{address.where}/{quote(address.vhost, safe='')}"
    measure = min(LONGEST_SWEEP if order.probe == "prefetch" else LONGEST_MEASURE, order.within / 3)
    arguments = [
        order.probe,
        "--amqp",
        url,
        "--password-file",
        "/dev/stdin",
        "--for",
        f"{measure:.3f}s",
        "--prefix",
        prefix,
    ]
    if address.tls and server.ca_file is not None:
        arguments += ["--ca-file", str(server.ca_file)]
    if address.tls and not server.verify:
        arguments.append("--no-verify")
    return [*arguments, "--json"] if order.as_json else arguments
