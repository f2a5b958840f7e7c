"""AMQP 1.0 clients of the faults: a publisher at a constant rate, or a consumer that settles as its role says.

The library is not needed for anything else, so it is loaded when the first client is made.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal
from urllib.parse import quote

from ackscope.address import Address
from ackscope.errors import MissingPart

_TICK = 0.1

Outcome = Literal["accepted", "rejected", "released", "modified"]
"""How a consumer settles a message; modified says that the delivery failed, which counts towards a delivery limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a client does on its link.

    Attributes:
        rate: messages to publish per second; 0 makes a consumer.
        credit: how many messages a consumer asks for at first.
        renew: when a consumer asks for one more: with each message that it received, or settled; else never.
        take: called in a consumer with the number of unsettled messages, after each message and every 0.1 s; returns
            how many of them to settle now, the oldest first.
        outcome: how it settles them.
        presettled: whether the sender of the link settles each message when it sends it.
        attaches: links that are attached per second, each in a session of its own, and never detached.
        sessions: the most sessions that are open then.
    """

    rate: float = 0.0
    credit: int = 0
    renew: Literal["received", "settled"] | None = None
    take: Callable[[int], int] = lambda _unsettled: 0
    outcome: Outcome = "accepted"
    presettled: bool = False
    attaches: float = 0.0
    sessions: int = 50


class NativeClient:
    """A connection with one link, served by a thread of its own.

    Args:
        address: the broker; its virtual host is that of the connection.
        container: the container id, which is the name of the client.
        where: the address of the link: see `of_queue` and `of_exchange`.
        **role: fields of `Role`.

    Attributes:
        received: number of messages that were delivered to it.
        outcomes: how the broker settled what it published: accepted, rejected or released.
        attached: number of links that it attached again.
        refused: how often the broker ended its link or session with an error; it is attached again after half a second.
        error: why the connection ended, if it did.
        local: address of its end of the connection, `host:port`; None before it is open.

    Raises:
        MissingPart: python-qpid-proton is not installed.
    """

    def __init__(self, address: Address, container: str, where: str, **role: Any) -> None:
        library = _library()
        self._ending = threading.Event()
        self.received = self.attached = self.refused = 0
        self.outcomes: Counter[str] = Counter()
        self.error: str | None = None
        self.local: str | None = None
        self._container = library["reactor"].Container(_handler(self, library, address, where, Role(**role)))
        self._container.container_id = container
        self._thread = threading.Thread(target=self._container.run, name=container, daemon=True)
        self._thread.start()

    @property
    def ending(self) -> bool:
        """Whether the connection is to be closed."""
        return self._ending.is_set()

    def close(self) -> None:
        """Close the connection; what it holds is then delivered again."""
        self._ending.set()
        self._thread.join(timeout=5.0)


def of_queue(name: str) -> str:
    """Return the address of a queue."""
    return f"/queues/{quote(name, safe='')}"


def of_exchange(name: str, key: str) -> str:
    """Return the address of an exchange, with the routing key of all messages."""
    return f"/exchanges/{quote(name, safe='')}/{quote(key, safe='')}"


def paced(rate: float) -> Callable[[int], int]:
    """Return a `take` that settles so many messages per second, and never catches up."""
    due = [time.monotonic()]

    def take(unsettled: int) -> int:
        now = time.monotonic()
        settles = min(unsettled, int(max(0.0, now - due[0]) * rate))
        due[0] = max(due[0] + settles / rate, now - max(_TICK, 1 / rate))
        return settles

    return take


def _library() -> dict[str, Any]:
    try:
        return {name: import_module(f"proton.{name}") for name in ("reactor", "handlers")} | {
            "proton": import_module("proton")
        }
    except ImportError:
        raise MissingPart(
            "this fault needs an AMQP 1.0 client: scripts/setup.sh test installs it, "
            "or pip install python-qpid-proton (it is compiled: a C compiler and the headers of Python)"
        ) from None


def _handler(client: NativeClient, library: dict[str, Any], address: Address, where: str, role: Role) -> Any:
    """Return the object that the library calls with its events; its base class is known only once it is loaded."""
    proton = library["proton"]
    message = proton.Message(body="lab", durable=True)
    states = {each: getattr(proton.Delivery, each.upper()) for each in ("accepted", "rejected", "released", "modified")}
    options = library["reactor"].AtMostOnce() if role.presettled else None

    class _Handler(library["handlers"].MessagingHandler):  # type: ignore[misc]  # a class loaded at run time
        def __init__(self) -> None:
            # The library would renew credit and accept messages by itself.
            super().__init__(prefetch=0, auto_accept=False)
            self.unsettled: list[Any] = []
            self.owed = self.due = 0.0
            self.again: float | None = None

        def on_start(self, event: Any) -> None:
            url = f"amqp://{quote(address.username)}:{quote(address.password)}@{address.host}:{address.port}"
            self.connection = event.container.connect(
                url, virtual_host=f"vhost:{address.vhost}", allowed_mechs="PLAIN", reconnect=False
            )
            self.link = self._attach(event.container, self.connection)
            event.container.schedule(_TICK, self)

        def on_connection_opened(self, event: Any) -> None:
            # The library tells no address of its socket.
            host, port = event.transport._selectable._delegate.getsockname()[:2]  # noqa: SLF001  the only way
            client.local = f"{host}:{port}"

        def _attach(self, container: Any, context: Any, name: str | None = None) -> Any:
            make = container.create_sender if role.rate else container.create_receiver
            link = make(context, where, name=name, options=options)
            if role.credit:
                link.flow(role.credit)
            return link

        def _attach_more(self, container: Any) -> Any:
            client.attached += 1
            session = self.connection.session()
            session.open()
            return self._attach(container, session, f"{container.container_id}-{client.attached}")

        def on_message(self, event: Any) -> None:
            client.received += 1
            if not role.presettled:
                self.unsettled.append(event.delivery)
            if role.renew == "received" or (role.presettled and role.renew):
                event.link.flow(1)
            self._settle()

        def on_accepted(self, _event: Any) -> None:
            client.outcomes["accepted"] += 1

        def on_rejected(self, _event: Any) -> None:
            client.outcomes["rejected"] += 1

        def on_released(self, _event: Any) -> None:
            client.outcomes["released"] += 1

        def on_timer_task(self, event: Any) -> None:
            if client.ending:
                self.connection.close()
                return
            self._settle()
            self.due += role.attaches * _TICK
            while self.due >= 1 and client.attached < role.sessions:
                self.due -= 1
                self._attach_more(event.container)
            if self.again is not None and time.monotonic() >= self.again:
                self.again, self.link = None, self._attach_more(event.container)
            self.owed += role.rate * _TICK
            while self.owed >= 1:
                self.owed -= 1
                if self.again is None and self.link.credit:
                    delivery = self.link.send(message)
                    if role.presettled:
                        delivery.settle()
            event.container.schedule(_TICK, self)

        def on_session_error(self, event: Any) -> None:
            self._refused(event.session)

        def on_link_error(self, event: Any) -> None:
            self._refused(event.link)

        def _refused(self, endpoint: Any) -> None:
            client.refused += 1
            endpoint.close()
            self.again = time.monotonic() + 0.5

        def on_transport_error(self, event: Any) -> None:
            client.error = str(event.transport.condition)

        def _settle(self) -> None:
            for _ in range(role.take(len(self.unsettled))):
                delivery = self.unsettled.pop(0)
                if role.outcome == "modified":
                    delivery.local.failed = True
                link = delivery.link
                self.settle(delivery, states[role.outcome])
                if role.renew == "settled":
                    link.flow(1)

    return _Handler()
