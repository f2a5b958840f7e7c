"""Control of a running lab from any process: rabbitmqctl, signals, kill and restart of its nodes.

The lab writes its nodes to a file in its folder, which faults, benchmarks and tests in other processes read.
"""

import dataclasses
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson

from ackscope.errors import BrokerError, DataError, Unreachable
from lab.brokers import Broker
from lab.node import LabNode, wait_answers
from lab.processes import MARK, Process, start, wait_ended

TOOL_SECONDS = 120.0
ALARM_WATERMARK, USUAL_WATERMARK = "0.00001", "0.6"
"""Memory watermarks: one that always blocks publishers, and one that small lab nodes never reach."""

TOOLS = "bin"
"""Name of the folder with the tools of the broker, in that of the lab."""
_TOOLS = ("rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-queues", "rabbitmq-plugins")
_END_SECONDS = 20.0
_FILE = "control.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """One node.

    Attributes:
        environ: environment of the node and its tools.
        command: the command that starts the node.
        output: the file with its console output.
        listeners: ports that are open once it is ready, beside that of the management API.
    """

    node: LabNode
    process: Process
    environ: Mapping[str, str]
    command: tuple[str, ...]
    output: Path
    listeners: tuple[int, ...]


class Control:
    """A running lab, identified by its folder.

    Attributes:
        broker: its installation; `broker.asked` is the name of the version, such as "4.3".
        folder: folder of the lab.
        handles: its nodes, numbered from 0.
    """

    def __init__(self, broker: Broker, folder: Path, handles: Sequence[Handle]) -> None:
        self.broker, self.folder, self.handles = broker, folder, list(handles)

    @property
    def tools(self) -> Path:
        """The folder with the command line tools of the broker, for the PATH of a shell."""
        return self.folder / TOOLS

    @property
    def nodes(self) -> list[LabNode]:
        """Return the name and addresses of each node."""
        return [handle.node for handle in self.handles]

    def pid(self, index: int) -> int:
        """The process of a node."""
        return self.handles[index].process.pid

    def ctl(self, index: int, *arguments: str) -> str:
        """Run rabbitmqctl against a node, and return its output.

        Raises:
            BrokerError: the command failed; the message has its last line.
        """
        return self.tool(index, "rabbitmqctl", *arguments)

    def tool(self, index: int, program: str, *arguments: str) -> str:
        """Run another tool of the broker, such as rabbitmq-queues, rabbitmq-diagnostics or rabbitmq-upgrade.

        Raises:
            BrokerError: the command failed; the message has its last line.
        """
        handle = self.handles[index]
        command = self.broker.command(self.folder, program, *arguments)
        what = f"{program} {' '.join(arguments)} on {handle.node.name}"
        return run_tool(command, {**handle.environ, MARK: str(self.folder)}, what)

    def signal(self, index: int, number: signal.Signals) -> bool:
        """Send a signal such as SIGSTOP or SIGCONT to a node. Returns False if the node has ended."""
        return self.handles[index].process.signal(number)

    def kill(self, index: int) -> None:
        """Kill a node, like a power failure; its data stays for `restart`."""
        process = self.handles[index].process
        if process.signal(signal.SIGKILL):
            wait_ended([process], _END_SECONDS)

    def restart(self, index: int) -> None:
        """Start a killed node with its data and ports, and wait until it is ready.

        The node is not tied to a process. The `stop` of the lab finds it by its mark.

        Raises:
            Unreachable: the node did not become ready.
        """
        handle = self.handles[index]
        process = start(handle.command, environ=handle.environ, folder=self.folder, output=handle.output, tied=False)
        self.handles[index] = dataclasses.replace(handle, process=process)
        self.save()
        try:
            wait_answers(handle.node, listeners=handle.listeners, lives=process.alive)
        except Unreachable as error:
            raise Unreachable(f"{error}; console output: {handle.output}") from None

    def save(self) -> None:
        """Write the lab's file atomically; it contains credentials of the throwaway broker."""
        document = {
            "broker": dataclasses.asdict(self.broker),
            "handles": [dataclasses.asdict(handle) for handle in self.handles],
        }
        partial = self.folder / f"{_FILE}.partial"
        partial.touch(0o600)
        partial.write_bytes(orjson.dumps(document, default=str))
        partial.replace(self.folder / _FILE)
        self._write_tools()

    def _write_tools(self) -> None:
        """Write the tools of the first node, so that commands of findings work with `tools` on the PATH."""
        handle = self.handles[0]
        self.tools.mkdir(exist_ok=True)
        for program in _TOOLS:
            environ = {**handle.environ, MARK: str(self.folder)}
            words = ["env", "-i", *(f"{name}={value}" for name, value in environ.items())]
            words += self.broker.command(self.folder, program)
            script = self.tools / program
            script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            script.chmod(0o700)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the lab that runs in a folder.

        Raises:
            DataError: no lab runs there, or its file cannot be read.
        """
        try:
            document = orjson.loads((folder / _FILE).read_bytes())
            broker = document["broker"]
            root = Path(broker["root"]) if broker["root"] else None
            handles = [
                Handle(
                    node=LabNode(**each["node"]),
                    process=Process(**each["process"]),
                    environ=each["environ"],
                    command=tuple(each["command"]),
                    output=Path(each["output"]),
                    listeners=tuple(each["listeners"]),
                )
                for each in document["handles"]
            ]
            return cls(Broker(broker["asked"], broker["version"], root), folder, handles)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{folder}: no lab is running there ({type(error).__name__}); start one: ackscope lab up"
            ) from None


def run_tool(command: Sequence[str], environ: Mapping[str, str], what: str) -> str:
    """Run a command line tool of the broker, and return its output.

    Raises:
        BrokerError: it failed or timed out; the message begins with `what` and has its last line.
    """
    try:
        done = subprocess.run(
            list(command),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TOOL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BrokerError(f"{what}: no answer within {TOOL_SECONDS:.0f} s") from None
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise BrokerError(f"{what}: {said[-1] if said else f'failed with {done.returncode}'}")
    return done.stdout
