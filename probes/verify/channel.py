"""An AMQP channel that exposes every frame in order and the reason of its end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pika import exceptions, spec

from ackscope.errors import Unreachable
from probes.verify.frames import Cancel, Closed, Confirm, Delivery, Frame, QueueState, Return

TIMEOUT = 10.0
"""Timeout in seconds of each response of the broker."""

F = TypeVar("F", bound=Frame)


class RawChannel:
    """One AMQP channel.

    Attributes:
        log: every delivery, confirm, return and cancel, in the order of arrival.
        closed: future whose result tells how the channel ended.
        published: number of messages published in confirm mode, which is the sequence number of the latest one.
    """

    def __init__(self, raw: Any, connection: Any) -> None:
        self._raw, self._connection = raw, connection
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._getting: asyncio.Future[Delivery | None] | None = None
        self.closed: asyncio.Future[Closed] = self._loop.create_future()
        self.log: list[Frame] = []
        self.published = 0
        raw.add_on_close_callback(lambda _, error: self._ended(closed(error)))
        raw.add_on_return_callback(self._on_return)
        raw.add_on_cancel_callback(
            lambda method: self._enter(Cancel(consumer=method.method.consumer_tag, at=time.monotonic()))
        )
        for kind in (spec.Basic.Ack, spec.Basic.Nack):
            raw.add_callback(self._on_confirm, [kind], one_shot=False)
        raw.add_callback(lambda _: self._got(None), [spec.Basic.GetEmpty], one_shot=False)

    async def call(self, method: Any, reply: Any) -> Any:
        """Send a method and return its response.

        Raises:
            Closed: the broker closed the channel or the connection instead.
        """
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._open_or_raise()
        self._raw._rpc(method, lambda answer: resolve(answered, answer.method), [reply])  # noqa: SLF001  all methods alike
        return await self.answer(answered, method.NAME)

    async def answer(self, future: "asyncio.Future[Any]", what: str) -> Any:
        """Wait for `future`, or for the channel to end.

        Raises:
            Closed: the channel or connection ended first.
            Unreachable: timed out.
        """
        await asyncio.wait({future, self.closed}, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        self._open_or_raise()
        raise Unreachable(f"no answer within {TIMEOUT:g} s to {what}")

    def send(self, method: Any, content: tuple[Any, bytes] | None = None) -> None:
        """Send a method without a response.

        Raises:
            Closed: the channel is closed already.
        """
        self._open_or_raise()
        self._raw._send_method(method, content)  # noqa: SLF001  pika does not wrap all methods and flags

    async def declare(
        self,
        name: str = "",
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        passive: bool = False,
        arguments: Mapping[str, object] | None = None,
    ) -> QueueState:
        """queue.declare. Pass the flags explicitly, because 4.3 refuses a queue with these defaults."""
        method = spec.Queue.Declare(
            queue=name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=dict(arguments or {}),
        )
        found = await self.call(method, spec.Queue.DeclareOk)
        return QueueState(name=found.queue, messages=found.message_count, consumers=found.consumer_count)

    async def look(self, queue: str) -> QueueState:
        """Passive queue.declare. Returns the ready messages and the consumers of a queue."""
        return await self.declare(queue, passive=True)

    async def delete(self, queue: str) -> int:
        """queue.delete. Returns the number of messages that were deleted with the queue."""
        return int((await self.call(spec.Queue.Delete(queue=queue), spec.Queue.DeleteOk)).message_count)

    async def exchange(self, name: str, kind: str = "fanout", *, arguments: Mapping[str, object] | None = None) -> None:
        """exchange.declare of a durable auto-delete exchange, which is deleted with its last binding."""
        method = spec.Exchange.Declare(
            exchange=name, type=kind, durable=True, auto_delete=True, arguments=dict(arguments or {})
        )
        await self.call(method, spec.Exchange.DeclareOk)

    async def delete_exchange(self, name: str) -> None:
        """exchange.delete."""
        await self.call(spec.Exchange.Delete(exchange=name), spec.Exchange.DeleteOk)

    async def bind(self, queue: str, exchange: str, key: str = "") -> None:
        """queue.bind."""
        await self.call(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key=key), spec.Queue.BindOk)

    async def qos(self, count: int, *, global_: bool = False) -> None:
        """basic.qos."""
        await self.call(spec.Basic.Qos(prefetch_count=count, global_qos=global_), spec.Basic.QosOk)

    async def confirm_select(self) -> None:
        """confirm.select. Messages published from now on are numbered from 1."""
        await self.call(spec.Confirm.Select(), spec.Confirm.SelectOk)

    async def consume(
        self,
        queue: str,
        *,
        auto_ack: bool = False,
        exclusive: bool = False,
        arguments: Mapping[str, object] | None = None,
    ) -> str:
        """basic.consume. Returns the consumer tag. Deliveries are added to `log`."""
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._open_or_raise()
        tag: str = self._raw.basic_consume(
            queue,
            self._on_delivery,
            auto_ack=auto_ack,
            exclusive=exclusive,
            arguments=dict(arguments or {}),
            callback=lambda answer: resolve(answered, answer),
        )
        await self.answer(answered, "basic.consume")
        return tag

    async def cancel(self, consumer: str) -> None:
        """basic.cancel."""
        await self.call(spec.Basic.Cancel(consumer_tag=consumer), spec.Basic.CancelOk)

    async def get(self, queue: str, *, auto_ack: bool = False) -> Delivery | None:
        """basic.get. Returns one message and adds it to `log`; None if the queue is empty."""
        self._getting = self._loop.create_future()
        self._open_or_raise()
        self._raw.basic_get(queue, self._on_got, auto_ack=auto_ack)
        found: Delivery | None = await self.answer(self._getting, "basic.get")
        return found

    def publish(
        self,
        queue: str,
        body: bytes = b"x",
        *,
        exchange: str = "",
        persistent: bool = True,
        mandatory: bool = False,
        immediate: bool = False,
        headers: Mapping[str, object] | None = None,
    ) -> int:
        """basic.publish with the routing key `queue`. Returns the sequence number of the message on this channel."""
        properties = spec.BasicProperties(delivery_mode=2 if persistent else 1, headers=dict(headers or {}))
        method = spec.Basic.Publish(exchange=exchange, routing_key=queue, mandatory=mandatory, immediate=immediate)
        self.send(method, (properties, body))
        self.published += 1
        return self.published

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        """basic.ack."""
        self.send(spec.Basic.Ack(delivery_tag=tag, multiple=multiple))

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """basic.nack."""
        self.send(spec.Basic.Nack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def reject(self, tag: int, *, requeue: bool = True) -> None:
        """basic.reject."""
        self.send(spec.Basic.Reject(delivery_tag=tag, requeue=requeue))

    async def close(self) -> None:
        """channel.close, and wait for its end. Can be called twice."""
        if self._raw.is_open:
            self._raw.close()
        await asyncio.wait({self.closed}, timeout=TIMEOUT)

    def mark(self, method: Any) -> list[int]:
        """Return a list that gets the length of `log` whenever this method arrives, to mark its place in the log."""
        marks: list[int] = []
        self._raw.add_callback(lambda _: marks.append(len(self.log)), [method], one_shot=False)
        return marks

    def frames(self, kind: type[F]) -> list[F]:
        """Return the frames of one kind, in order."""
        return [item for item in self.log if isinstance(item, kind)]

    async def until(self, done: Callable[[], bool], within: float = TIMEOUT) -> bool:
        """Wait until `done()` is true, the channel ends, or the timeout. Returns the last value of `done()`."""
        deadline = self._loop.time() + within
        while not done():
            left = deadline - self._loop.time()
            if left <= 0 or self.closed.done():
                return done()
            self._arrived.clear()
            try:
                async with asyncio.timeout(min(left, 0.25)):
                    await self._arrived.wait()
            except TimeoutError:
                continue
        return True

    async def deliveries(self, count: int, within: float = TIMEOUT) -> list[Delivery]:
        """Wait for `count` deliveries in total. Returns all deliveries, even if they are fewer."""
        await self.until(lambda: len(self.frames(Delivery)) >= count, within)
        return self.frames(Delivery)

    async def settled(self, within: float = TIMEOUT) -> bool:
        """Wait until all published messages are acked or nacked. Returns whether they were in time."""
        wanted = set(range(1, self.published + 1))
        return await self.until(lambda: wanted <= self.answered(), within)

    def answered(self) -> set[int]:
        """Return the sequence numbers that the broker has acked or nacked."""
        settled: set[int] = set()
        lowest = 1
        for confirm in self.frames(Confirm):
            if confirm.multiple:
                settled.update(range(lowest, (confirm.tag or self.published) + 1))
                lowest = max(lowest, confirm.tag + 1)
            else:
                settled.add(confirm.tag)
        return settled

    async def end(self, within: float = TIMEOUT) -> Closed | None:
        """Wait for the broker to close the channel. Returns None if it does not."""
        await asyncio.wait({self.closed}, timeout=within)
        return self.closed.result() if self.closed.done() else None

    def _open_or_raise(self) -> None:
        if self.closed.done():
            raise self.closed.result()

    def _ended(self, how: Closed) -> None:
        resolve(self.closed, how)
        self._arrived.set()

    def _enter(self, item: Frame) -> None:
        self.log.append(item)
        self._arrived.set()

    def _on_delivery(self, _: Any, method: Any, properties: Any, body: bytes) -> None:
        self._enter(_delivery(method, properties, body))

    def _on_got(self, _: Any, method: Any, properties: Any, body: bytes) -> None:
        found = _delivery(method, properties, body)
        self._enter(found)
        self._got(found)

    def _got(self, found: Delivery | None) -> None:
        if self._getting is not None:
            resolve(self._getting, found)
        # pika does not reset this callback for an empty queue, and would refuse the next get.
        self._raw._on_getok_callback = None  # noqa: SLF001  see above

    def _on_confirm(self, answer: Any) -> None:
        method = answer.method
        self._enter(
            Confirm(
                tag=method.delivery_tag,
                multiple=bool(method.multiple),
                nacked=isinstance(method, spec.Basic.Nack),
                at=time.monotonic(),
            )
        )

    def _on_return(self, _: Any, method: Any, __: Any, body: bytes) -> None:
        self._enter(
            Return(
                code=method.reply_code,
                text=method.reply_text,
                routing_key=method.routing_key,
                body=body,
                at=time.monotonic(),
            )
        )


def _delivery(method: Any, properties: Any, body: bytes) -> Delivery:
    return Delivery(
        tag=method.delivery_tag,
        body=body,
        redelivered=bool(method.redelivered),
        consumer=getattr(method, "consumer_tag", ""),
        exchange=method.exchange,
        routing_key=method.routing_key,
        headers=dict(properties.headers or {}),
        delivery_mode=properties.delivery_mode,
        waiting=getattr(method, "message_count", None),
        at=time.monotonic(),
    )


def closed(error: BaseException) -> Closed:
    """Convert the exception of pika that tells how a channel or connection ended."""
    settled = isinstance(error, exceptions.ConnectionClosed | exceptions.ChannelClosed)
    code = getattr(error, "reply_code", 0) if settled else 0
    return Closed(int(code), str(getattr(error, "reply_text", "") or error))


def resolve(future: "asyncio.Future[Any]", value: object) -> None:
    """Set the result of a future, unless it is done."""
    if not future.done():
        future.set_result(value)
