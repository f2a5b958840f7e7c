"""What a fault is, and what it may use while it lasts."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pika.adapters.blocking_connection import BlockingConnection

from ackscope.address import Address
from ackscope.errors import BrokerError, Unreachable
from ackscope.findings import Subject
from lab.amqp import LOST, connect

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault being held: where, until when, and what it made.

    Attributes:
        address: the broker, over AMQP.
        management: base URL of its management API, with credentials.
        ending: set when the fault should end.
        announce: called once, when the fault is in effect.
    """

    address: Address
    management: str
    ending: threading.Event
    announce: Callable[[], None]
    _queues: list[str] = field(default_factory=list)
    _connections: list[BlockingConnection] = field(default_factory=list)

    def connect(self, name: str) -> BlockingConnection:
        """Open a connection that is closed when the fault ends."""
        connection = connect(self.address, name)
        self._connections.append(connection)
        return connection

    def make_queue(self, name: str, arguments: dict[str, object] | None = None) -> None:
        """Declare a durable classic queue, empty, that is deleted when the fault ends."""
        connection = connect(self.address, f"{name}.setup")
        channel = connection.channel()
        channel.queue_delete(name)
        self._queues.append(name)
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "classic", **(arguments or {})})
        connection.close()

    def ticks(self, seconds: float) -> Iterator[None]:
        """Every `seconds`, until the fault should end, with every connection served in between."""
        due = time.monotonic()
        while not self.ending.is_set():
            yield
            due = max(due + seconds, time.monotonic())
            while not self.ending.is_set() and (left := due - time.monotonic()) > 0:
                self._serve(min(left, 0.05))

    def _serve(self, seconds: float) -> None:
        # The newest waits, the others only look: heartbeats and deliveries of all are taken care of.
        for connection in self._connections[:-1]:
            connection.process_data_events(time_limit=0)
        self._connections[-1].process_data_events(time_limit=seconds)

    def undo(self) -> None:
        """Close the connections and delete the queues; a broker that is gone has nothing to undo."""
        for connection in self._connections:
            try:
                connection.close()
            except LOST:
                _log.debug("a connection had ended already")
        if not self._queues:
            return
        try:
            connection = connect(self.address, "fault-cleanup")
            for name in self._queues:
                connection.channel().queue_delete(name)
            connection.close()
        except (BrokerError, *LOST) as error:
            _log.warning("queues left behind (%s): %s", ", ".join(self._queues), error)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """One fault that can be injected.

    Attributes:
        rule: the rule of diagnosis that should name it.
        summary: one sentence, what goes wrong.
        subject: what the finding will be about, without its virtual host.
        inject: makes the fault, announces it, and keeps it up until `Fault.ending` is set.
    """

    name: str
    rule: str
    summary: str
    subject: Subject
    inject: Callable[[Fault], None]


@contextmanager
def undone(fault: Fault) -> Iterator[Fault]:
    """Undo the fault at the end, however it comes.

    Raises:
        Unreachable: the broker went away while the fault was held.
    """
    try:
        yield fault
    except LOST as error:
        raise Unreachable(f"{fault.address}: the broker went away ({type(error).__name__}); inject again") from None
    finally:
        fault.undo()
