"""AMQP 1.0 clients of the faults: a publisher at a constant rate, and a consumer whose handler decides what it settles.

The library is not needed for anything else, so it is loaded when the first client is made.
"""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import quote

from ackscope.address import Address
from ackscope.errors import MissingPart

_TICK = 0.1


class NativeClient:
    """A connection with one link, served by a thread of its own.

    Args:
        address: the broker; its virtual host is that of the connection.
        container: the container id, which is the name of the client.
        queue: the queue to publish to or to consume from; it must exist.
        rate: messages to publish per second; 0 makes a consumer.
        credit: how many messages a consumer asks for at first.
        renew: whether a consumer asks for one more with each message that it gets, settled or not.
        take: called in a consumer with the number of unsettled messages, after each message and every 0.1 s; returns
            how many of them to accept now, the oldest first.

    Raises:
        MissingPart: python-qpid-proton is not installed.
    """

    def __init__(
        self,
        address: Address,
        container: str,
        queue: str,
        *,
        rate: float = 0.0,
        credit: int = 0,
        renew: bool = False,
        take: Callable[[int], int] = lambda _unsettled: 0,
    ) -> None:
        library = _library()
        self._ending = threading.Event()
        self.received = 0
        self.error: str | None = None
        handler = _handler(self, library, address, queue, rate=rate, credit=credit, renew=renew, take=take)
        self._container = library["reactor"].Container(handler)
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


def _handler(
    client: NativeClient,
    library: dict[str, Any],
    address: Address,
    queue: str,
    *,
    rate: float,
    credit: int,
    renew: bool,
    take: Callable[[int], int],
) -> Any:
    """Return the object that the library calls with its events; its base class is known only once it is loaded."""
    where = f"/queues/{quote(queue, safe='')}"
    message = library["proton"].Message(body="lab", durable=True)

    class _Handler(library["handlers"].MessagingHandler):  # type: ignore[misc]  # a class loaded at run time
        def __init__(self) -> None:
            # The library would renew credit and accept messages by itself.
            super().__init__(prefetch=0, auto_accept=False)
            self.unsettled: list[Any] = []
            self.owed = 0.0

        def on_start(self, event: Any) -> None:
            url = f"amqp://{quote(address.username)}:{quote(address.password)}@{address.host}:{address.port}"
            self.connection = event.container.connect(
                url, virtual_host=f"vhost:{address.vhost}", allowed_mechs="PLAIN", reconnect=False
            )
            make = event.container.create_sender if rate else event.container.create_receiver
            self.link = make(self.connection, where)
            if credit:
                self.link.flow(credit)
            event.container.schedule(_TICK, self)

        def on_message(self, event: Any) -> None:
            client.received += 1
            self.unsettled.append(event.delivery)
            if renew:
                self.link.flow(1)
            self._settle()

        def on_timer_task(self, event: Any) -> None:
            if client.ending:
                self.connection.close()
                return
            self._settle()
            self.owed += rate * _TICK
            while self.owed >= 1:
                self.owed -= 1
                if self.link.credit:
                    self.link.send(message)
            event.container.schedule(_TICK, self)

        def on_transport_error(self, event: Any) -> None:
            client.error = str(event.transport.condition)

        def _settle(self) -> None:
            for _ in range(take(len(self.unsettled))):
                self.accept(self.unsettled.pop(0))

    return _Handler()
