"""The contract of a fault, and the helpers that it can use."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import requests
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address
from ackscope.errors import AckscopeError, BrokerError, Unreachable, UsageError
from ackscope.findings import Subject
from ackscope.log import get_logger
from lab.amqp import LOST, connect
from lab.amqp10 import NativeClient
from lab.brokers import SUITES
from lab.control import Control
from lab.node import NOTHING, Extra

_log = get_logger(__name__)
_ASK_SECONDS = 30.0

Protocol = Literal["AMQP 0-9-1", "AMQP 1.0", "stream", "MQTT"]
"""What the clients of a fault use."""

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault in effect: the broker, its end, and how to undo it.

    Attributes:
        address: the broker, over AMQP.
        management: base URL of its management API, with credentials.
        ending: set when the fault should end.
        announce: called once, when the fault is in effect.
        control: the lab, for faults of nodes; None if only the addresses of the broker are known.
        culprits: AMQP 1.0 clients that cause it. They are announced by the addresses of their connections, because some
            brokers tell no name of them.
    """

    address: Address
    management: str
    ending: threading.Event
    announce: Callable[[], None]
    control: Control | None = None
    culprits: list[NativeClient] = field(default_factory=list)
    _connections: list[BlockingConnection] = field(default_factory=list)
    _undo: ExitStack = field(default_factory=ExitStack)

    @property
    def lab(self) -> Control:
        """The lab.

        Raises:
            UsageError: only the addresses of this broker are known.
        """
        if self.control is None:
            raise UsageError("this fault needs a running lab: `ackscope lab up`, then `ackscope lab fault NAME`")
        return self.control

    def connect(self, name: str, *, served: bool = True, **parameters: Any) -> BlockingConnection:
        """Open a connection that is closed when the fault ends.

        Args:
            name: name of the connection on the broker.
            served: `ticks` reads its socket and answers heartbeats; if False, nobody does.
            **parameters: other `pika.ConnectionParameters`, which override the defaults.

        Raises:
            Refused: wrong credentials or virtual host.
            Unreachable: no connection.
        """
        connection = connect(self.address, name, **parameters)
        if served:
            self._connections.append(connection)
        self.later(lambda: _close(connection))
        return connection

    def make_queue(self, name: str, arguments: dict[str, object] | None = None, **declare: Any) -> None:
        """Declare an empty durable queue (default: classic), which is deleted when the fault ends.

        Args:
            name: name of the queue; begins with `fault.`.
            arguments: arguments of the queue, such as `x-queue-type`.
            **declare: other arguments of `queue_declare`, which override the defaults.
        """
        with self.briefly(f"{name}.setup") as channel:
            channel.queue_delete(name)
            self.later(lambda: self._delete_queue(name))
            channel.queue_declare(
                name, **{"durable": True, "arguments": {"x-queue-type": "classic", **(arguments or {})}, **declare}
            )

    def make_exchange(self, name: str, kind: str = "direct", arguments: dict[str, object] | None = None) -> None:
        """Declare a durable exchange, which is deleted when the fault ends.

        Args:
            name: name of the exchange; begins with `fault.`.
            kind: its type.
            arguments: arguments of the exchange, such as `alternate-exchange`.
        """
        with self.briefly(f"{name}.setup") as channel:
            channel.exchange_declare(name, kind, durable=True, arguments=arguments)
        self.later(lambda: self._delete_exchange(name))

    @contextmanager
    def briefly(self, name: str) -> Iterator[BlockingChannel]:
        """A channel for setup; its connection is closed at the end of the block."""
        connection = connect(self.address, name)
        try:
            yield connection.channel()
        finally:
            _close(connection)

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        """Call the management API; returns its JSON, or None for a response without a body.

        Args:
            method: GET, PUT, POST or DELETE.
            path: begins with `/api`; names in it are quoted.
            document: sent as JSON.

        Raises:
            BrokerError: the call failed; the message holds the status.
        """
        try:
            answer = requests.request(method, f"{self.management}{path}", json=document, timeout=_ASK_SECONDS)
        except requests.RequestException as error:
            raise Unreachable(f"{method} {path}: no answer ({type(error).__name__})") from None
        if not answer.ok:
            raise BrokerError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer.json() if answer.content else None

    def later(self, undo: Callable[[], object]) -> None:
        """Register an undo action for the end of the fault; they run in reverse order, and errors are logged."""

        def _safely() -> None:
            try:
                undo()
            except (AckscopeError, *LOST) as error:
                _log.warning("could not undo a part of the fault", error=str(error))

        self._undo.callback(_safely)

    def hold(self) -> None:
        """Serve the connections until the fault should end."""
        for _ in self.ticks(0.5):
            pass

    def ticks(self, seconds: float) -> Iterator[None]:
        """Yield every `seconds` until the fault should end, and serve all connections in between."""
        due = time.monotonic()
        while not self.ending.is_set():
            yield
            due = max(due + seconds, time.monotonic())
            while not self.ending.is_set() and (left := due - time.monotonic()) > 0:
                self._serve(min(left, 0.05))

    def _serve(self, seconds: float) -> None:
        if not self._connections:
            self.ending.wait(seconds)
            return
        # The newest connection waits, the others only poll, so heartbeats and deliveries of all are processed.
        for connection in self._connections[:-1]:
            connection.process_data_events(time_limit=0)
        self._connections[-1].process_data_events(time_limit=seconds)

    def undo(self) -> None:
        """Run all undo actions in reverse order; errors of a lost broker are ignored."""
        self._undo.close()

    def _delete_exchange(self, name: str) -> None:
        with self.briefly("fault-cleanup") as channel:
            channel.exchange_delete(name)

    def _delete_queue(self, name: str) -> None:
        with self.briefly("fault-cleanup") as channel:
            channel.queue_delete(name)


def _close(connection: BlockingConnection) -> None:
    try:
        connection.close()
    except LOST:
        _log.debug("connection was already closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """One fault that can be injected.

    Attributes:
        rule: the rule of diagnosis that should report it; "" for a decoy, which no rule should report.
        summary: what goes wrong, in one sentence.
        subject: subject of the finding; a virtual host of None is that of the broker's address. A name that is
            known only after injection (of a connection or channel) is "": any subject of the kind matches.
        client: name of the client that the finding must involve; "" is not checked.
        protocol: what its clients use. Faults of nodes and settings have no client of their own, only the sample
            workload, which uses AMQP 0-9-1.
        inject: injects the fault, announces it, and keeps it in effect until `Fault.ending` is set.
        brokers: versions on which the rule can name it.
        unsure: versions that do not tell enough, so that the rule must say that it cannot tell, and why.
        nodes: minimum number of nodes.
        extra: what the lab's nodes must be started with.
        alone: it disturbs the whole broker, so no other fault can be in effect.
        apart: not together with similar faults: loops of channels or connections are detected by counters of the whole
            cluster, so two of them hide each other.
        wrecks: the broker does not recover from it, so a benchmark starts a new lab afterwards.
        also: other rules that may rightly report findings.
        one_shot: `ackscope diagnose` can detect it in 15 s; False if it takes minutes of observation.
    """

    name: str
    rule: str
    summary: str
    subject: Subject
    inject: Callable[[Fault], None]
    client: str = ""
    protocol: Protocol = "AMQP 0-9-1"
    brokers: tuple[str, ...] = tuple(SUITES)
    unsure: tuple[str, ...] = ()
    nodes: int = 1
    extra: Extra = NOTHING
    alone: bool = False
    apart: bool = False
    wrecks: bool = False
    also: tuple[str, ...] = ()
    one_shot: bool = True

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions into which it can be injected."""
        return tuple(version for version in SUITES if version in (*self.brokers, *self.unsure))


@contextmanager
def undone(fault: Fault) -> Iterator[Fault]:
    """Undo the fault at the end of the block, also after an error.

    Raises:
        Unreachable: the connection to the broker was lost while the fault was in effect.
    """
    try:
        yield fault
    except LOST as error:
        raise Unreachable(
            f"{fault.address}: connection to the broker lost ({type(error).__name__}); inject the fault again"
        ) from None
    finally:
        fault.undo()
