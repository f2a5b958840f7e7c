"""An AMQP connection with one channel for probes, with raw frames, exact times and no hidden retries.

Publisher and consumer of a probe use separate connections. On a shared one, deliveries would delay the measured acks.
"""

import asyncio
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from pika import frame, spec

from ackscope.errors import BrokerError, Unreachable
from ackscope.failures import FailurePhrase
from probes.amqp_errors import explain_close, explain_open, shared
from probes.identity import PERSISTENT
from probes.kernel_timestamps import TimestampedConnection
from probes.parameters import parameters
from probes.queues import QueueSpec
from probes.settings import AmqpServer
from probes.timed_connection import resolve

TIMEOUT = 10.0
"""Timeout in seconds for opening a connection, and for each response of the broker."""

_FAREWELL = 0.4
_UNLIMITED = 1 << 31
_BODY = struct.Struct(">BHL")
_END = b"\xce"


class SettleCallback(Protocol):
    """Called for every ack or nack frame; `at` is when it reached this machine, in monotonic seconds."""

    def __call__(self, tag: int, at: float, *, multiple: bool | None, nacked: bool) -> None:
        """Process the frame; `multiple` is None if only a single answer is known, and not its frame."""
        ...


class DeliverCallback(Protocol):
    """Called for every delivery; `at` is when it reached this machine, in monotonic seconds."""

    def __call__(self, tag: int, body: bytes, at: float, *, redelivered: bool) -> None:
        """Process the delivery."""
        ...


class ProbeConnection:
    """A connection to one broker; made by `ProbeConnection.open`.

    Attributes:
        closed: future whose result is the reason why the connection ended.
        product: product and version of the broker, such as "RabbitMQ 3.10.8".
    """

    def __init__(self, server: AmqpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._connection: Any = None
        self._channel: Any = None
        self._doing = "opening it"
        self._blocked = self._closing = False
        self._got: Callable[[Any], None] | None = None
        self._head, self._chunk = b"", 0
        self.closed: asyncio.Future[BrokerError] = self._loop.create_future()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.product = ""

    @classmethod
    async def open(cls, server: AmqpServer, name: str) -> "ProbeConnection":
        """Connect and open a channel. The broker shows `name` as the name of the connection.

        Raises:
            BrokerError: the connection failed; the message says why.
            ConfigError: the CA file cannot be read.
        """
        link = cls(server)
        opened = link._loop.create_future()

        def not_opened(_: Any, error: BaseException) -> None:
            link._down(explain_open(error, server))
            resolve(opened, None)

        link._connection = TimestampedConnection(
            parameters(server, name, TIMEOUT),
            on_open_callback=lambda _: resolve(opened, None),
            on_open_error_callback=not_opened,
            on_close_callback=lambda _, error: link._down(explain_close(error, server, link._doing)),
            custom_ioloop=link._loop,
        )
        try:
            async with asyncio.timeout(TIMEOUT + 1.0):
                await opened
            link._alive_or_raise()
            link._connection.use_kernel_times()
            properties = link._connection.server_properties or {}
            link.product = f"{properties.get('product', 'unknown')} {properties.get('version', '')}".strip()
            await link._ask("opening a channel", link._open_channel)
        except TimeoutError:
            await link.close()
            raise Unreachable(f"{server.address.where}: {FailurePhrase.NO_ANSWER} {TIMEOUT:g} s") from None
        except (BrokerError, asyncio.CancelledError):
            await link.close()
            raise
        return link

    @property
    def alive(self) -> bool:
        """Whether the connection is open."""
        return not (self._closing or self.closed.done())

    @property
    def blocked(self) -> bool:
        """Whether the broker has sent connection.blocked without connection.unblocked."""
        return self._blocked

    def on_blocked(self, blocked: Callable[[str], None], unblocked: Callable[[], None]) -> None:
        """Register callbacks for the start and the end of a block. `blocked` gets the reason of the broker."""

        def block(_: Any, method: Any) -> None:
            self._blocked = True
            blocked(str(method.method.reason))

        def unblock(_: Any, __: Any) -> None:
            self._blocked = False
            unblocked()

        self._connection.add_on_connection_blocked_callback(block)
        self._connection.add_on_connection_unblocked_callback(unblock)

    @property
    def credit(self) -> int:
        """How many messages the broker takes now: AMQP 0-9-1 has no such limit for publishers."""
        return _UNLIMITED

    def on_credit(self, more: Callable[[], None]) -> None:
        """Register a callback for the end of a time without credit, which AMQP 0-9-1 does not have."""

    async def declare(self, queue: QueueSpec) -> None:
        """Declare the queue, or check that the existing one has the same arguments.

        Raises:
            Refused: the broker refuses, or a queue of that name has other arguments.
        """
        await self._ask(
            f"declaring queue {queue.name!r}",
            lambda done: self._channel.queue_declare(
                queue.name, durable=True, arguments=dict(queue.arguments), callback=done
            ),
        )

    async def round_trip(self, queue: str) -> float:
        """Declare a queue passively, which changes nothing. Returns the seconds until the response was read."""
        at = 0.0

        def answered(done: Callable[[Any], None], answer: Any) -> None:
            nonlocal at
            at = self._connection.read_at
            done(answer)

        began = time.monotonic()
        await self._ask(
            f"inspecting queue {queue!r}",
            lambda done: self._channel.queue_declare(queue, passive=True, callback=partial(answered, done)),
        )
        return at - began

    async def touch(self, queue: QueueSpec) -> None:
        """Prevent the expiry of a queue without consumers: get one message and discard it.

        Observed on 3.10.8 and 4.3.6: neither publishing nor declaring a quorum queue again counts as use; get does.
        A stream does not expire, and the broker would refuse a get from it.
        """
        if not queue.is_stream:
            await self._ask(f"getting from queue {queue.name!r}", lambda done: self._get(queue.name, done))

    async def purge(self, queue: str) -> None:
        """Purge a queue of the probe."""
        await self._ask(f"purging queue {queue!r}", lambda done: self._channel.queue_purge(queue, callback=done))

    async def delete(self, queue: str) -> None:
        """Delete a queue of the probe; no error if it does not exist."""
        await self._ask(f"deleting queue {queue!r}", lambda done: self._channel.queue_delete(queue, callback=done))

    async def confirms(self, settle: SettleCallback, returned: Callable[[bytes], None]) -> None:
        """Enable publisher confirms. `returned` is called with the body of every unroutable message."""
        nack = spec.Basic.Nack

        def answered(method: Any) -> None:
            inner = method.method
            at = self._connection.read_at
            settle(inner.delivery_tag, at, multiple=inner.multiple, nacked=isinstance(inner, nack))

        self._channel.add_on_return_callback(lambda _, __, ___, body: returned(body))
        await self._ask(
            "enabling publisher confirms", lambda done: self._channel.confirm_delivery(answered, callback=done)
        )

    async def consume(self, queue: str, prefetch: int, deliver: DeliverCallback) -> None:
        """Consume as the only consumer of the queue, with manual acks.

        Raises:
            Refused: another client consumes from it.
        """

        def delivered(_: Any, method: Any, __: Any, body: bytes) -> None:
            deliver(method.delivery_tag, body, self._connection.read_at, redelivered=method.redelivered)

        def cancelled(_: Any) -> None:
            where = self._server.address.where
            self._end(Unreachable(f"{where}: queue {queue!r} was deleted, or its node went down"))
            self._hang_up()

        doing = f"consuming from queue {queue!r}"
        # Quorum queues ignore `exclusive`, so check the number of existing consumers.
        there = await self._ask(doing, lambda done: self._channel.queue_declare(queue, passive=True, callback=done))
        if there.method.consumer_count:
            raise shared(self._server, doing)
        self._channel.add_on_cancel_callback(cancelled)
        await self._ask(doing, lambda done: self._channel.basic_qos(prefetch_count=prefetch, callback=done))
        await self._ask(
            doing,
            lambda done: self._channel.basic_consume(queue, delivered, auto_ack=False, exclusive=True, callback=done),
        )

    def prepare(
        self, key: str, size: int, *, exchange: str = "", delivery_mode: int = PERSISTENT, mandatory: bool = True
    ) -> None:
        """Prepare to publish bodies of `size` bytes to an exchange (default: the default exchange).

        Messages differ only in their body, so the frames before it are encoded once. A publish is then one
        concatenation and one write instead of three.
        """
        self._doing = f"publishing with routing key {key!r}"
        number = self._channel.channel_number
        publish = spec.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory)
        properties = spec.BasicProperties(delivery_mode=delivery_mode, content_type="application/octet-stream")
        self._head = frame.Method(number, publish).marshal() + frame.Header(number, size, properties).marshal()
        self._chunk = self._connection.params.frame_max - 8

    def publish(self, body: bytes) -> float:
        """Publish a body. Allowed only after `prepare`, and while `alive`.

        Returns:
            Time at which it was handed to the kernel, in monotonic seconds.
        """
        number = self._channel.channel_number
        parts = [self._head]
        for start in range(0, len(body), self._chunk):
            piece = body[start : start + self._chunk]
            parts += (_BODY.pack(3, number, len(piece)), piece, _END)
        # Not basic_publish, which marshals and writes three frames for each message.
        return float(self._connection.send_now(b"".join(parts)))

    def ack(self, tag: int) -> None:
        """Acknowledge one delivery."""
        if self.alive:
            self._channel.basic_ack(tag)

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond in time, abort it."""
        connection, self._closing = self._connection, True
        if not (connection.is_closed or connection.is_closing):
            connection.close()
        await asyncio.wait({self._over}, timeout=_FAREWELL)
        if not self._over.done():
            # A broker that blocks publishers reads nothing, not even a close. pika has no public method to abort.
            connection._terminate_stream(ConnectionError("closed by this program"))  # noqa: SLF001  see above

    async def _ask(self, doing: str, call: Callable[[Callable[[Any], None]], Any]) -> Any:
        """Make a call and return its response.

        Raises:
            BrokerError: the connection ended first, or the call timed out.
        """
        before, self._doing = self._doing, doing
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._alive_or_raise()
        call(lambda answer: resolve(answered, answer))
        while not answered.done():
            await asyncio.wait({answered, self.closed}, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
            self._alive_or_raise()
            if not answered.done() and not self._blocked:
                raise Unreachable(f"{self._server.address.where}: {FailurePhrase.NO_ANSWER} {TIMEOUT:g} s to {doing}")
        self._doing = before
        return answered.result()

    def _alive_or_raise(self) -> None:
        if self.closed.done():
            raise self.closed.result()

    def _get(self, queue: str, done: Callable[[Any], None]) -> None:
        if self._got is None:
            # pika calls back only for a message, not for an empty queue.
            self._channel.add_callback(self._got_nothing, [spec.Basic.GetEmpty], one_shot=False)
        self._got = done
        self._channel.basic_get(queue, lambda *_: done(None), auto_ack=True)

    def _got_nothing(self, _: Any) -> None:
        if self._got is not None:
            self._got(None)

    def _open_channel(self, done: Callable[[Any], None]) -> None:
        def closed(_: Any, error: BaseException) -> None:
            self._end(explain_close(error, self._server, self._doing))
            self._hang_up()

        def opened(channel: Any) -> None:
            channel.add_on_close_callback(closed)
            done(channel)

        self._channel = self._connection.channel(on_open_callback=opened)

    def _end(self, error: BrokerError) -> None:
        resolve(self.closed, error)

    def _down(self, error: BrokerError) -> None:
        self._end(error)
        resolve(self._over, None)

    def _hang_up(self) -> None:
        """Close the connection after its channel has ended, because both must end together."""
        if self._connection.is_open:
            self._connection.close()
