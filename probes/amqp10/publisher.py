"""The AMQP 1.0 counterpart of `ProbeConnection` for a stream that publishes: one link to one queue.

Queues are declared over AMQP 0-9-1, on a connection that is open for as long as that takes.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable

from ackscope.errors import BrokerError, Unreachable, Unsupported
from probes.amqp10.connection import Amqp10Connection, queue_address
from probes.amqp10.links import Amqp10Sender, LinkEnded, PublishOutcome, Settlement
from probes.identity import PERSISTENT
from probes.probe_connection import ProbeConnection, SettleCallback
from probes.queues import QueueSpec
from probes.settings import AmqpServer

FIRST_VERSION = (4, 0)
"""From this version on RabbitMQ speaks AMQP 1.0 by itself."""

BLOCKED_AFTER = 1.0
"""Seconds without credit after which the broker is said to block the publisher. At full speed it gives some later."""

NO_CREDIT = "it gives an AMQP 1.0 publisher no credit"
WINDOW_CLOSED = "it keeps the window of an AMQP 1.0 session closed, as in an alarm"


class Amqp10Publisher:
    """A connection with one publishing link; made by `Amqp10Publisher.open`.

    Attributes:
        closed: future whose result is the reason why the connection or the link ended.
        product: product and version of the broker, such as "RabbitMQ 4.3.6".
    """

    def __init__(self, server: AmqpServer, link: Amqp10Connection, queue: str) -> None:
        self._server, self._link, self._queue = server, link, queue
        self._loop = asyncio.get_running_loop()
        self._sender: Amqp10Sender | None = None
        self._bodies: dict[int, bytes] = {}
        self._head = b""
        self._blocked = ""
        self._waiting: asyncio.TimerHandle | None = None
        self._on_blocked: tuple[Callable[[str], None], Callable[[], None]] = (lambda _: None, lambda: None)
        self._on_credit: Callable[[], None] = lambda: None
        self._settle: SettleCallback | None = None
        self._returned: Callable[[bytes], None] = lambda _: None
        self.closed: asyncio.Future[BrokerError] = self._loop.create_future()
        self.product = link.product

    @classmethod
    async def open(cls, server: AmqpServer, name: str, queue: QueueSpec) -> "Amqp10Publisher":
        """Declare the queue and connect.

        Raises:
            BrokerError: the connection failed; `Unsupported` if this broker does not speak AMQP 1.0.
            MissingPart: the library is not installed.
        """
        helper = await ProbeConnection.open(server, f"{name} (declares its queue)")
        try:
            refuse_old(helper.product, server)
            await helper.declare(queue)
        finally:
            await helper.close()
        link = cls(server, await Amqp10Connection.open(server, name), queue.name)
        link._link.closed.add_done_callback(lambda ended: link._end(ended.result()))
        return link

    @property
    def alive(self) -> bool:
        """Whether the connection and its link are open."""
        return self._link.alive and not self.closed.done()

    @property
    def blocked(self) -> bool:
        """Whether the broker has taken nothing for a while."""
        return bool(self._blocked)

    @property
    def credit(self) -> int:
        """How many messages the broker takes now."""
        return 0 if self._sender is None else self._sender.credit

    def on_blocked(self, blocked: Callable[[str], None], unblocked: Callable[[], None]) -> None:
        """Register callbacks for the start and the end of a block. `blocked` gets what the broker does."""
        self._on_blocked = blocked, unblocked

    def on_credit(self, more: Callable[[], None]) -> None:
        """Register a callback for the end of a time without credit."""
        self._on_credit = more

    async def declare(self, queue: QueueSpec) -> None:
        """Declare the queue again, or check that the existing one has the same arguments.

        Raises:
            BrokerError: the broker refuses, or cannot be reached.
        """
        await self._helped(lambda helper: helper.declare(queue))

    async def touch(self, queue: QueueSpec) -> None:
        """Prevent the expiry of the queue; see `ProbeConnection.touch`."""
        await self._helped(lambda helper: helper.touch(queue))

    async def confirms(self, settle: SettleCallback, returned: Callable[[bytes], None]) -> None:
        """Attach the link. `returned` is called with the body of every message that found no queue.

        Raises:
            BrokerError: the broker refuses the link, or does not answer.
        """
        self._settle, self._returned = settle, returned
        try:
            sender = await self._link.sender(queue_address(self._queue))
        except LinkEnded as error:
            raise Unreachable(f"{self._link.where}: the broker refuses a link to {self._queue!r} ({error})") from None
        sender.on_answer(self._answered)
        sender.on_flow(self._flowed)
        sender.on_end(
            lambda why: self._end(
                Unreachable(f"{self._link.where}: the broker ended the link to queue {self._queue!r} ({why})")
            )
        )
        self._sender = sender
        # The first credit comes with the frame after the attach.
        await self._link.until(lambda: sender.credit > 0, BLOCKED_AFTER)
        self._watch()

    def prepare(
        self, key: str, size: int, *, exchange: str = "", delivery_mode: int = PERSISTENT, mandatory: bool = True
    ) -> None:
        """Prepare to publish bodies of `size` bytes. `key` is the queue that the link leads to.

        Messages differ only in their body, which is last, so the sections before it are encoded once.
        """
        if exchange or key != self._queue or not mandatory:
            raise ValueError(f"this link leads to queue {self._queue!r} and nowhere else")
        encoded = self._link.encode(bytes(size), durable=delivery_mode == PERSISTENT)
        self._head = encoded[: len(encoded) - size]

    def publish(self, body: bytes) -> float:
        """Publish a body. Allowed only after `prepare`, and while `alive`.

        Returns:
            Time at which it was handed to the kernel, in monotonic seconds; with a closed window, when it should have.
        """
        if self._sender is None:
            raise RuntimeError("publish before confirms")
        self._bodies[self._sender.sent + 1] = body
        sent = self._sender.send(self._head + body)
        self._watch()
        return sent

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond in time, cut it."""
        if self._waiting is not None:
            self._waiting.cancel()
        await self._link.close()

    async def _helped(self, work: Callable[[ProbeConnection], Awaitable[None]]) -> None:
        helper = await ProbeConnection.open(self._server, "ackscope-probe (declares a queue)")
        try:
            await work(helper)
        finally:
            await helper.close()

    def _answered(self, answer: PublishOutcome) -> None:
        body = self._bodies.pop(answer.number, b"")
        if answer.settlement is Settlement.RELEASED:
            self._returned(body)
        if self._settle is not None:
            refused = answer.settlement not in {Settlement.ACCEPTED, Settlement.RELEASED}
            self._settle(answer.number, answer.at, multiple=None, nacked=refused)

    def _flowed(self) -> None:
        if self.credit <= 0:
            self._watch()
            return
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._blocked:
            self._blocked = ""
            self._on_blocked[1]()
        self._on_credit()

    def _watch(self) -> None:
        """After a while without credit, report a block."""
        if self.credit <= 0 and self._waiting is None and not self._blocked:
            self._waiting = self._loop.call_later(BLOCKED_AFTER, self._still_waits)

    def _still_waits(self) -> None:
        self._waiting = None
        if self._sender is not None and self.credit <= 0 and self.alive:
            self._blocked = WINDOW_CLOSED if self._sender.raw.queued > 0 else NO_CREDIT
            self._on_blocked[0](self._blocked)

    def _end(self, error: BrokerError) -> None:
        if not self.closed.done():
            self.closed.set_result(error)


def refuse_old(product: str, server: AmqpServer) -> None:
    """Refuse a broker that does not speak AMQP 1.0 by itself.

    Raises:
        Unsupported: it is older, or is not RabbitMQ.
    """
    found = re.fullmatch(r"RabbitMQ (\d+)\.(\d+).*", product)
    if found is None or tuple(map(int, found.groups())) < FIRST_VERSION:
        raise Unsupported(
            f"{server.address.where}: AMQP 1.0 is measured on RabbitMQ 4.0 and later, and this is {product}"
        )
