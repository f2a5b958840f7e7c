"""Runs one probe on demand for `/probe`, as a child process.

The child is `ackscope probe`: it creates its own queues, reports and cleans up. One run at a time per cluster.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ackscope.clock import Clock
from ackscope.log import get_logger, redact
from probes.catalogue import PROBES
from probes.settings import AmqpServer, AmqpSettings

log = get_logger(__name__)

COMMAND = (sys.executable, "-m", "ackscope", "probe")

LONGEST_MEASURE, LONGEST_SWEEP = 3.0, 24.0
"""Seconds to measure, and to try prefetch values, if the timeout allows it.

Connecting, waiting for late confirms and cleaning up are extra.
"""
_SWEEP, _LOOK = 2.0, 0.1
"""Seconds that an interrupted child gets to clean up, and between two checks of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandRequest:
    """The probe to run.

    Attributes:
        cluster: name of a cluster with an AMQP address.
        probe: name of the probe.
        within: seconds after which the child is interrupted; cleanup is extra.
        as_json: whether to report as JSON instead of text.
    """

    cluster: str
    probe: str
    within: float
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandRun:
    """Result of a run.

    Attributes:
        code: exit code of `ackscope probe`; None if it timed out.
        seconds: duration.
        report: its stdout.
        log: its stderr, without credentials.
    """

    code: int | None
    seconds: float
    report: str
    log: str


class OnDemandProbes:
    """Runs probes on demand. Thread-safe.

    Args:
        targets: cluster name -> where to connect. Nothing else is ever connected to.
        prefix: prefix of everything that the probes create.
        clock: times the runs.
        command: the command to run, without the name and options of the probe.
    """

    def __init__(
        self, targets: Mapping[str, AmqpSettings], prefix: str, clock: Clock, command: Sequence[str] = COMMAND
    ) -> None:
        self.targets = targets
        self._prefix, self._clock, self._command = prefix, clock, tuple(command)
        self._busy = {name: threading.Lock() for name in targets}
        self._stopped = threading.Event()

    def run(self, order: OnDemandRequest) -> OnDemandRun | None:
        """Run the probe and wait. Returns None if another run on this cluster is in progress.

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
        """Whether any run is in progress."""
        return any(lock.locked() for lock in self._busy.values())

    def stop(self) -> None:
        """Interrupt all runs, wait until they have cleaned up, and accept no more."""
        self._stopped.set()
        for busy in self._busy.values():
            if busy.acquire(timeout=2 * _SWEEP):
                busy.release()

    def _run(self, order: OnDemandRequest, server: AmqpServer) -> OnDemandRun:
        began = self._clock.now()
        process = subprocess.Popen(
            [*self._command, *cli_arguments(order, server, self._prefix)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in a terminal must reach only this process, which then stops the child in order.
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
            log.warning("on-demand probe timed out", probe=order.probe, cluster=order.cluster, seconds=order.within)
        return OnDemandRun(
            code=None if late.is_set() else process.returncode,
            seconds=self._clock.now().since(began),
            report=report.decode(errors="replace"),
            log=redact(stderr.decode(errors="replace")),
        )

    def _watch(self, process: subprocess.Popen[bytes], within: float, late: threading.Event) -> None:
        """Interrupt the child on timeout or stop, so that it cleans up; then kill it."""
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


def cli_arguments(order: OnDemandRequest, server: AmqpServer, prefix: str) -> list[str]:
    """Return name and options of the probe. The password is not among them: every local user could read it."""
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
    if server.stream_port is not None and "stream_port" in PROBES[order.probe].one_shot.takes:
        arguments += ["--stream-port", str(server.stream_port)]
    return [*arguments, "--json"] if order.as_json else arguments
