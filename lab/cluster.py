"""A private RabbitMQ of 1 to 3 nodes, started and stopped from Python.

with start_lab(broker="4.3", nodes=3) as lab:
    lab.kill(1)
    lab.restart(1)
    print(lab.broker, lab.nodes[0].amqp, lab.ctl(0, "cluster_status"))
"""

import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import requests

from ackscope.errors import BrokerError, MissingPart, UsageError
from lab.brokers import NAMES, Broker, find_broker, minor
from lab.control import Control, Handle
from lab.node import NOTHING, Extra, LabNode, NodeRunner, base_environ, running_version
from lab.ports import free_ports
from lab.processes import Process, end, end_marked, start, wait_ended

MOST_NODES = 3
_PREFIX = "ackscope-lab-"
_STOP_SECONDS = 20.0
_CLUSTER_SECONDS = 60.0
_SWEEP_SECONDS = 4.0


class Lab:
    """A running lab; use it as a context manager or call `stop`.

    Attributes:
        broker: the running version, such as 4.3.6.
        nodes: how to reach each node.
        folder: data, logs and cookie. Deleted by `stop`.
    """

    def __init__(self, broker: Broker, folder: Path, nodes: int, *, tied: bool, extra: Extra = NOTHING) -> None:
        self.folder = folder
        self._extra = extra
        self._source, self._tied = broker, tied
        self._epmd_port = free_ports(1)[0]
        self._runners: list[NodeRunner] = []
        self._wanted = nodes
        self.epmd: Process | None = None
        self.broker = broker.version

    @property
    def nodes(self) -> list[LabNode]:
        """Return the name and addresses of each node, numbered from 0."""
        return [runner.node for runner in self._runners]

    @property
    def processes(self) -> list[Process]:
        """Return the node processes, in the order of `nodes`."""
        return [runner.process for runner in self._runners if runner.process is not None]

    def start(self) -> None:
        """Start every node, join them, and wait until all are ready.

        Raises:
            Unreachable: a node did not become ready; nothing is left running.
        """
        try:
            self._start()
        except BaseException:
            # Also on KeyboardInterrupt: a lab runs completely or not at all.
            self.stop()
            raise

    def _start(self) -> None:
        self._source.prepare()
        self._write_cookie()
        self.epmd = start(
            self._source.command(self.folder, "epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"),
            environ=base_environ(self._source, self.folder, self._epmd_port),
            folder=self.folder,
            output=self.folder / "epmd.log",
            tied=self._tied,
        )
        for number in range(1, self._wanted + 1):
            self._runners.append(
                NodeRunner(self._source, self.folder, number, self._epmd_port, tied=self._tied, extra=self._extra)
            )
        for runner in self._runners:
            runner.start()
        for runner in self._runners:
            runner.wait_ready()
        self.broker = running_version(self.nodes[0].management)
        for index in range(1, len(self._runners)):
            self.ctl(index, "stop_app")
            self.ctl(index, "join_cluster", self.nodes[0].name)
            self.ctl(index, "start_app")
        if len(self._runners) > 1:
            self._wait_cluster()
        self.control().save()

    def _write_cookie(self) -> None:
        home = self.folder / "home"
        home.mkdir()
        cookie = home / ".erlang.cookie"
        cookie.touch(0o600)
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)

    def _wait_cluster(self) -> None:
        deadline = time.monotonic() + _CLUSTER_SECONDS
        names = {node.name for node in self.nodes}
        for runner in self._runners:
            runner.wait_ready()
            while (seen := _running(runner.node.management)) != names:
                if time.monotonic() > deadline:
                    missing = ", ".join(sorted(names - seen))
                    raise BrokerError(f"{runner.node.name} is not clustered with {missing}")
                time.sleep(0.2)

    def kill(self, index: int) -> None:
        """Kill a node (SIGKILL), like a power failure; its data stays for `restart`."""
        process = self._runners[index].process
        if process is not None and process.signal(signal.SIGKILL):
            wait_ended([process], _STOP_SECONDS)

    def restart(self, index: int) -> None:
        """Start a node with its data and ports, and wait until it is ready; stop it first if it is running.

        Call it from a thread that lives as long as the lab: a tied node ends with the thread that started it.

        Raises:
            Unreachable: the node did not become ready.
        """
        runner = self._runners[index]
        if runner.process is not None:
            end([runner.process], _STOP_SECONDS)
        runner.start()
        runner.wait_ready()
        self.control().save()

    def ctl(self, index: int, *arguments: str) -> str:
        """Run rabbitmqctl against a node, and return its output.

        Raises:
            BrokerError: the command failed; the message has its last line.
        """
        return self.control().ctl(index, *arguments)

    def control(self) -> Control:
        """Return an object that controls the lab from other processes and threads."""
        handles = [
            Handle(
                node=runner.node,
                process=runner.process,
                environ=runner.environ(),
                command=tuple(runner.command()),
                output=runner.output,
                listeners=runner.listeners,
            )
            for runner in self._runners
            if runner.process is not None
        ]
        return Control(self._source, self.folder, handles)

    def stop(self) -> None:
        """Stop every process of the lab and delete its folder. It may be called twice."""
        stop_processes(self.folder, self.processes, self.epmd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_lab(
    broker: str = "distro", nodes: int = 1, *, tied: bool = True, folder: Path | None = None, extra: Extra = NOTHING
) -> Lab:
    """Start a private broker on loopback and free ports, and wait until it is ready.

    Args:
        broker: a name of `lab.brokers.NAMES`.
        nodes: 1 to 3, joined to one cluster.
        tied: whether its processes are killed when the calling thread ends, for any reason.
        folder: a new folder for all files; default: a temporary folder.
        extra: additional plugins and configuration.

    Raises:
        UsageError: unknown broker, or not 1 to 3 nodes.
        MissingPart: this version is not available on this machine.
        Unreachable: a node did not become ready.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise UsageError(f"invalid number of nodes {nodes}; a lab has 1 to {MOST_NODES}")
    source = find_broker(broker)
    if folder is None:
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    else:
        folder.mkdir(parents=True, mode=0o700)
    lab = Lab(source, folder, nodes, tied=tied, extra=extra)
    lab.start()
    if broker in NAMES[1:] and minor(lab.broker) != broker:
        print(f"ackscope lab: RabbitMQ {broker} is not installed; using {lab.broker}", file=sys.stderr)
    return lab


def stop_processes(folder: Path, nodes: list[Process], epmd: Process | None) -> None:
    """Stop the nodes, their epmd, and all other processes that carry the mark of `folder`; then delete the folder.

    Raises:
        MissingPart: some processes could not be stopped.
    """
    end(nodes, _STOP_SECONDS)
    if epmd is not None:
        end([epmd], _STOP_SECONDS)
    left = end_marked(folder, _STOP_SECONDS)
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        raise MissingPart(f"could not stop these processes of the lab: {pids}; stop them as their owner")
    shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Stop and delete labs whose starter has ended: a node that a fault restarted is not tied to a process."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        starter = folder.name.removeprefix(_PREFIX).split("-")[0]
        if not Path("/proc", starter).exists() and not end_marked(folder, _SWEEP_SECONDS):
            shutil.rmtree(folder, ignore_errors=True)


def _running(management: str) -> set[str]:
    """Return the names of the nodes that this one reports as running; none if it does not respond."""
    try:
        answer = requests.get(f"{management}/api/nodes", timeout=10)
        nodes = answer.json() if answer.ok else []
    except (requests.RequestException, ValueError):
        return set()
    return {node["name"] for node in nodes if node.get("running")}
