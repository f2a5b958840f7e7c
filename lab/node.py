"""A node of the lab: its ports, files, environment, start and readiness."""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pika
import pika.exceptions
import requests

from ackscope.address import parse_amqp
from ackscope.errors import BrokerError, Unreachable
from lab.brokers import Broker
from lab.ports import free_ports
from lab.processes import Process, start

READY_WITHIN = 60.0
_POLL = 0.1
_LOG_LINES = 8
_DECORATION = (">", "BOOT FAILED", "====")
_PLUGINS = ("rabbitmq_management", "rabbitmq_prometheus")

# Only the disk limit differs from the defaults: the lab must run on an almost full disk without an alarm.
_CONFIG = """\
listeners.tcp.lab = 127.0.0.1:{amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = {management}
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = {prometheus}
disk_free_limit.absolute = 10MB
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Additional configuration of every node of a lab.

    Attributes:
        plugins: names of additional plugins to enable.
        config: lines for its `rabbitmq.conf`; `{folder}` is replaced by the path of the node's own folder, and each
            `{port}` by another free port.
        files: name -> content of additional files in that folder, such as `advanced.config`.
        prefix: a program with arguments that starts the node by exec, such as `prlimit --nofile=300`.
    """

    plugins: tuple[str, ...] = ()
    config: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


NOTHING = Extra()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one node, all on loopback; they stay the same after a restart."""

    amqp: int
    management: int
    prometheus: int
    distribution: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabNode:
    """Name and addresses of a node of the lab.

    Attributes:
        name: its name in the broker, such as lab1@localhost.
        amqp: URL with the credentials of the throwaway broker; virtual host `/`.
        management: base URL of the management API, with credentials.
        prometheus: base URL of the broker's own Prometheus listener; its metrics are under `/metrics`.
    """

    name: str
    amqp: str
    management: str
    prometheus: str

    def as_dict(self) -> dict[str, str]:
        """The node as `lab up --json` shows it."""
        return asdict(self)


class NodeRunner:
    """One node of the lab: its files under `<lab>/<short name>/` and its process.

    Attributes:
        listeners: ports that are open once it is ready, beside that of the management API.
    """

    def __init__(
        self, broker: Broker, lab: Path, number: int, epmd_port: int, *, tied: bool, extra: Extra = NOTHING
    ) -> None:
        self._broker, self._lab, self._tied, self._epmd_port, self._extra = broker, lab, tied, epmd_port, extra
        self._short = f"lab{number}"
        self.ports = Ports(
            **dict(zip(("amqp", "management", "prometheus", "distribution"), free_ports(4), strict=True))
        )
        self.process: Process | None = None
        self.node = LabNode(
            name=f"{self._short}@localhost",
            amqp=f"amqp://guest:guest@127.0.0.1:{self.ports.amqp}",
            management=f"http://guest:guest@127.0.0.1:{self.ports.management}",
            prometheus=f"http://127.0.0.1:{self.ports.prometheus}",
        )
        self._write_files()

    def _write_files(self) -> None:
        folder = self._lab / self._short
        folder.mkdir()
        inside = self._broker.inside(self._lab) / self._short
        extra = self._extra.config.replace("{folder}", str(inside))
        self.listeners = (self.ports.amqp, self.ports.prometheus, *free_ports(extra.count("{port}")))
        for port in self.listeners[2:]:
            extra = extra.replace("{port}", str(port), 1)
        (folder / "rabbitmq.conf").write_text(_CONFIG.format(**asdict(self.ports)) + extra)
        (folder / "enabled_plugins").write_text(f"[{','.join((*_PLUGINS, *self._extra.plugins))}].\n")
        # Empty files, so that the node does not read those of another broker on this host.
        (folder / "advanced.config").write_text("[].\n")
        (folder / "rabbitmq-env.conf").write_text("")
        for name, content in self._extra.files.items():
            (folder / name).write_bytes(content)

    def environ(self) -> dict[str, str]:
        """Return the environment of the node and its command line tools, without variables of the caller."""
        folder = self._broker.inside(self._lab) / self._short
        loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
        return {
            **base_environ(self._broker, self._lab, self._epmd_port),
            "RABBITMQ_NODENAME": self.node.name,
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONFIG_FILES": str(folder / "conf.d" / "*.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": str(self.ports.distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": loopback,
            # One scheduler: a tool does one thing and ends.
            "RABBITMQ_CTL_ERL_ARGS": f"+S 1:1 {loopback}",
            # Port range of its tools, wide enough for several labs.
            "RABBITMQ_CTL_DIST_PORT_MIN": "35672",
            "RABBITMQ_CTL_DIST_PORT_MAX": "35872",
            # The start script then replaces itself with the node by exec.
            "RUNNING_UNDER_SYSTEMD": "true",
            "ERL_CRASH_DUMP": str(folder / "log" / "erl_crash.dump"),
        }

    def command(self) -> list[str]:
        """The command that starts the node."""
        return [*self._extra.prefix, *self._broker.command(self._lab, "rabbitmq-server")]

    @property
    def output(self) -> Path:
        """The file with its console output."""
        return self._lab / self._short / "console.log"

    def start(self) -> None:
        """Start the process, without waiting until it is ready."""
        self.process = start(
            self.command(), environ=self.environ(), folder=self._lab, output=self.output, tied=self._tied
        )

    def wait_ready(self, seconds: float = READY_WITHIN) -> None:
        """Wait until it accepts AMQP connections, its management API responds and its listeners are open.

        Raises:
            Unreachable: it exited or was not ready in time; the message shows the end of its log.
        """
        try:
            wait_answers(self.node, seconds, listeners=self.listeners, lives=self._lives)
        except Unreachable as error:
            what, lines = self._said()
            raise Unreachable(f"{error}; {what}").with_log(lines) from None

    def _lives(self) -> bool:
        return self.process is not None and self.process.alive()

    def _said(self) -> tuple[str, str]:
        """Return what its log shows, and the lines."""
        folder = self._lab / self._short
        lines: list[str] = []
        for path in (folder / "console.log", folder / "log" / f"{self.node.name}.log"):
            if path.exists():
                lines += [line.rstrip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
        # A node that fails to boot logs the cause first, then pages of supervisor reports.
        errors = [line for line in lines if "[error]" in line and not line.endswith(_DECORATION)]
        if not lines:
            return "its log is empty", ""
        what, shown = (
            ("first errors of its log", errors[:_LOG_LINES]) if errors else ("end of its log", lines[-_LOG_LINES:])
        )
        return f"{what}:", "\n".join(f"  {line[:200]}" for line in shown)


def base_environ(broker: Broker, lab: Path, epmd_port: int) -> dict[str, str]:
    """Return the base environment of all programs of the lab: its own home, cookie and port mapper.

    A port mapper on the default port would outlive the lab and be shared with other nodes on this host.
    """
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(broker.inside(lab) / "home"),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd_port),
    }


def wait_answers(
    node: LabNode, seconds: float = READY_WITHIN, *, listeners: Sequence[int], lives: Callable[[], bool]
) -> None:
    """Wait until a node accepts AMQP connections, its management API responds and its listeners are open.

    Plugins start one after the other: the management API responds some milliseconds before the last listener opens.

    Raises:
        Unreachable: it exited (`lives` is false), or was not ready in time.
    """
    deadline = time.monotonic() + seconds
    while not (
        amqp_opens(node.amqp)
        and overview(node.management)
        and _answers(node.management, "nodes")
        and all(_answers(node.management, f"health/checks/port-listener/{port}") for port in listeners)
    ):
        if not lives():
            raise Unreachable(f"{node.name} exited while starting")
        if time.monotonic() > deadline:
            raise Unreachable(f"{node.name} was not ready within {seconds:.0f} s")
        time.sleep(_POLL)


def amqp_opens(url: str) -> bool:
    """Return whether an AMQP connection can be opened now."""
    address = parse_amqp(url)
    try:
        # First a plain connect, because pika logs each refused connection as an error.
        socket.create_connection((address.host, address.port), timeout=2).close()
        parameters = pika.URLParameters(url)
        parameters.socket_timeout = parameters.stack_timeout = 5
        pika.BlockingConnection(parameters).close()
    except (OSError, pika.exceptions.AMQPError):
        return False
    return True


def overview(management: str) -> dict[str, object] | None:
    """Return `/api/overview`; None if it does not respond."""
    try:
        answer = requests.get(f"{management}/api/overview", timeout=5)
        document = answer.json() if answer.ok else None
    except (requests.RequestException, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _answers(management: str, path: str) -> bool:
    """Return whether a path of the API succeeds; `nodes` of 4.3 answers 500 for some milliseconds after the start."""
    try:
        return requests.get(f"{management}/api/{path}", timeout=5).ok
    except requests.RequestException:
        return False


def running_version(management: str) -> str:
    """Return the version that the running broker reports.

    Raises:
        BrokerError: the broker reports no version.
    """
    version = (overview(management) or {}).get("rabbitmq_version")
    if not isinstance(version, str):
        raise BrokerError("no RabbitMQ version in /api/overview")
    return version
