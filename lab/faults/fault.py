"""What a fault is, and what it may use while it lasts."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address
from ackscope.errors import AckscopeError, BrokerError, Unreachable, UsageError
from ackscope.findings import Subject
from ackscope.log import get_logger
from lab.amqp import LOST, connect
from lab.brokers import SUITES
from lab.control import Control
from lab.node import NOTHING, Extra

_log = get_logger(__name__)
_ASK_SECONDS = 30.0


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault being held: where, until when, and what it made.

    Attributes:
        address: the broker, over AMQP.
        management: base URL of its management API, with credentials.
        ending: set when the fault should end.
        announce: called once, when the fault is in effect.
        control: the lab itself, for faults of nodes; None for a broker that is known by its addresses only.
    """

    address: Address
    management: str
    ending: threading.Event
    announce: Callable[[], None]
    control: Control | None = None
    _connections: list[BlockingConnection] = field(default_factory=list)
    _undo: ExitStack = field(default_factory=ExitStack)

    @property
    def lab(self) -> Control:
        """The lab.

        Raises:
            UsageError: this broker is known by its addresses only.
        """
        if self.control is None:
            raise UsageError("this fault needs a running lab: `ackscope lab up`, then `ackscope lab fault NAME`")
        return self.control

    def connect(self, name: str, *, served: bool = True, **parameters: Any) -> BlockingConnection:
        """Open a connection that is closed when the fault ends.

        Args:
            name: what the broker lists it under.
            served: `ticks` lets it read its socket and answer heartbeats; without, it lies still.
            **parameters: further ones of `pika.ConnectionParameters`, or others instead of the usual.

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
        """Declare a durable queue, empty, classic unless said, that is deleted when the fault ends.

        Args:
            name: of the queue; begin it with `fault.`.
            arguments: of the queue, `x-queue-type` among them.
            **declare: further ones of `queue_declare`, or others instead of the usual.
        """
        with self.briefly(f"{name}.setup") as channel:
            channel.queue_delete(name)
            self.later(lambda: self._delete_queue(name))
            channel.queue_declare(
                name, **{"durable": True, "arguments": {"x-queue-type": "classic", **(arguments or {})}, **declare}
            )

    @contextmanager
    def briefly(self, name: str) -> Iterator[BlockingChannel]:
        """A channel for some setting up; its connection is closed at the end of the block."""
        connection = connect(self.address, name)
        try:
            yield connection.channel()
        finally:
            _close(connection)

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        """Call the management API; the result is its JSON, None where the answer has no body.

        Args:
            method: GET, PUT, POST or DELETE.
            path: from `/api` on, names in it quoted.
            document: sent as JSON.

        Raises:
            BrokerError: it did not do it; the message holds the status.
        """
        try:
            answer = requests.request(method, f"{self.management}{path}", json=document, timeout=_ASK_SECONDS)
        except requests.RequestException as error:
            raise Unreachable(f"{method} {path}: no answer ({type(error).__name__})") from None
        if not answer.ok:
            raise BrokerError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer.json() if answer.content else None

    def later(self, undo: Callable[[], object]) -> None:
        """Have something undone when the fault ends, the latest first; what fails then is logged and no more."""

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
        """Every `seconds`, until the fault should end, with every connection served in between."""
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
        # The newest waits, the others only look: heartbeats and deliveries of all are taken care of.
        for connection in self._connections[:-1]:
            connection.process_data_events(time_limit=0)
        self._connections[-1].process_data_events(time_limit=seconds)

    def undo(self) -> None:
        """Undo all that was made, the latest first; a broker that is gone has nothing to undo."""
        self._undo.close()

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
        rule: the rule of diagnosis that should name it; "" for a decoy, which none should.
        summary: one sentence, what goes wrong.
        subject: what the finding will be about; a virtual host of None is that of the broker's address. A name that is
            known only once it is injected (of a connection, of a channel) is "": then any of that kind will do.
        inject: makes the fault, announces it, and keeps it up until `Fault.ending` is set.
        brokers: versions that it can be put into.
        nodes: how many nodes it takes at least.
        extra: what the lab's nodes must be started with.
        alone: it disturbs the whole broker: nothing else can be tried on it meanwhile.
        apart: not together with others like it: a loop of channels or connections is told by counters of the whole
            cluster, and two of them hide each other.
        wrecks: the broker does not recover from it by itself: a benchmark takes a new lab afterwards.
        also: rules that rightly speak up as well.
        one_shot: `ackscope diagnose` can see it in 15 s; not so what must be watched over minutes.
    """

    name: str
    rule: str
    summary: str
    subject: Subject
    inject: Callable[[Fault], None]
    brokers: tuple[str, ...] = tuple(SUITES)
    nodes: int = 1
    extra: Extra = NOTHING
    alone: bool = False
    apart: bool = False
    wrecks: bool = False
    also: tuple[str, ...] = ()
    one_shot: bool = True


@contextmanager
def undone(fault: Fault) -> Iterator[Fault]:
    """Undo the fault at the end, however it comes.

    Raises:
        Unreachable: the broker went away while the fault was held.
    """
    try:
        yield fault
    except LOST as error:
        raise Unreachable(
            f"{fault.address}: connection to the broker lost ({type(error).__name__}); inject the fault again"
        ) from None
    finally:
        fault.undo()
