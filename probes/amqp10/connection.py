"""An AMQP 1.0 connection on the event loop, with exact times, for probes and for checks of semantics.

Proton does the protocol: it turns bytes into events and calls into bytes. The socket is ours, so that send and receive
times are those of the kernel. Every link has a session of its own: the broker answers what it refuses by ending the
whole session.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from ackscope import __version__
from ackscope.errors import BrokerError, MissingPart, Refused, Unreachable
from ackscope.failures import FailurePhrase
from probes.amqp10.links import Amqp10Link, Amqp10Receiver, Amqp10Sender, LinkEnded, condition_text
from probes.amqp_errors import explain_open
from probes.settings import AmqpServer
from probes.timed_connection import TIMEOUT, TimedConnection, resolve
from probes.timed_socket import TimedSocket

IDLE = 30.0
"""Seconds without a frame from the broker after which the connection is dead. It sends one at least every 15 s."""

_BEAT = 5.0
_FORGOTTEN = 0.5
"""Seconds until the broker has forgotten a session that ended."""
_LOOK = 0.25
_LOGIN_REFUSED = "amqp:unauthorized-access"

L = TypeVar("L", bound=Amqp10Link)


def library() -> Any:
    """Return the module `proton`.

    Raises:
        MissingPart: it is not installed.
    """
    try:
        import proton  # noqa: PLC0415  an extra, needed for AMQP 1.0 only
    except ImportError:
        raise MissingPart(
            "AMQP 1.0 needs python-qpid-proton: pip install 'ackscope[amqp10]' "
            "(it is compiled: a C compiler and the headers of Python)"
        ) from None
    return proton


def queue_address(queue: str) -> str:
    """Return the address of a queue, for a source or a target."""
    return f"/queues/{quote(queue, safe='')}"


class Amqp10Connection(TimedConnection):
    """A connection to one broker; made by `Amqp10Connection.open`."""

    def __init__(self, server: AmqpServer, name: str, sock: TimedSocket, proton: Any) -> None:
        super().__init__(server, sock)
        address, self._proton = server.address, proton
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._news = asyncio.Event()
        self._links: dict[str, Amqp10Link] = {}
        self._names = itertools.count(1)
        self._session_ended_at = float("-inf")
        self._collector = proton.Collector()
        self._raw = proton.Connection()
        self._raw.collect(self._collector)
        self._raw.container, self._raw.hostname = name, f"vhost:{address.vhost}"
        self._raw.user, self._raw.password = address.username, server.password()
        # 4.0 does not report the container id.
        self._raw.properties = {"product": "ackscope", "version": __version__, "connection_name": name}
        self._transport = proton.Transport()
        self._transport.idle_timeout = IDLE
        # Errors are reported by this class; the library would print them to stderr as well.
        self._transport.tracer = lambda _, __: None
        sasl = self._transport.sasl()
        sasl.allowed_mechs("PLAIN")
        sasl.allow_insecure_mechs = True
        self._transport.bind(self._raw)

    @classmethod
    async def open(cls, server: AmqpServer, name: str) -> "Amqp10Connection":
        """Connect. The broker shows `name` as the container id of the connection.

        Raises:
            BrokerError: the connection failed; the message says why.
            ConfigError: the CA file cannot be read.
            MissingPart: the library is not installed.
        """
        proton = library()
        try:
            async with asyncio.timeout(TIMEOUT):
                sock = await TimedSocket.open(server)
        except OSError as error:
            raise explain_open(error, server) from None
        link = cls(server, name, sock, proton)
        try:
            link._begin()
            await link.answer(link._opened, "to the opening of an AMQP 1.0 connection")
        except BaseException:
            link.cut()
            raise
        return link

    async def sender(self, address: str | None, *, settled: bool = False, mixed: bool = False) -> Amqp10Sender:
        """Attach a link that publishes.

        Args:
            address: the target; None for the anonymous terminus.
            settled: whether messages are sent settled, so that the broker answers none.
            mixed: whether each message says so by itself.

        Raises:
            LinkEnded: the broker refuses the link.
            BrokerError: the connection ended, or the broker does not answer.
        """
        raw = (await self._session()).sender(self._name("sender"))
        mode = raw.SND_MIXED if mixed else raw.SND_SETTLED if settled else raw.SND_UNSETTLED
        raw.snd_settle_mode = mode
        raw.target.address = address
        return await self._attach(Amqp10Sender(raw, self))

    async def receiver(self, address: str, *, credit: int = 0, settled: bool = False) -> Amqp10Receiver:
        """Attach a link that consumes.

        Args:
            address: the source.
            credit: how many messages to ask for at once.
            settled: whether the broker is to send messages settled, so that each leaves the queue with its delivery.

        Raises:
            LinkEnded: the broker refuses the link.
            BrokerError: the connection ended, or the broker does not answer.
        """
        raw = (await self._session()).receiver(self._name("receiver"))
        raw.source.address = address
        raw.snd_settle_mode = raw.SND_SETTLED if settled else raw.SND_UNSETTLED
        link = await self._attach(Amqp10Receiver(raw, self))
        if credit:
            link.ask(credit)
        return link

    def encode(self, body: bytes, *, annotations: dict[str, Any] | None = None, **fields: Any) -> bytes:
        """Return a message with one data section in the encoding of AMQP 1.0.

        Args:
            body: the data section.
            annotations: message annotations.
            fields: attributes of proton's message, such as durable, ttl, priority, address.
        """
        symbol = self._proton.symbol
        marks = {symbol(key): value for key, value in (annotations or {}).items()}
        message = self._proton.Message(body=body, inferred=True, annotations=marks or None, **fields)
        encoded: bytes = message.encode()
        return encoded

    def flush(self) -> float:
        """Hand what the protocol has to send to the kernel.

        Returns:
            Time at which the first byte was handed over, or now if there was none; in monotonic seconds.
        """
        first = 0.0
        while (pending := self._transport.pending()) > 0:
            data = self._transport.peek(pending)
            at = self._socket.send(data)
            first = first or at
            self._transport.pop(len(data))
        return first or time.monotonic()

    async def until(self, done: Callable[[], bool], within: float = TIMEOUT) -> bool:
        """Wait until `done()` is true, the connection ends, or the timeout. Returns the last value of `done()`."""
        deadline = self._loop.time() + within
        while not done():
            left = deadline - self._loop.time()
            if left <= 0 or self.closed.done():
                return done()
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK)):
                    await self._news.wait()
        return True

    async def detach(self, link: Amqp10Link) -> None:
        """Close a link and wait until the broker has done so too: what the link held is in its queue again.

        Raises:
            BrokerError: the connection ended, or the broker does not answer.
        """
        link.detach()
        if not await self.until(lambda: link.gone) and not self.closed.done():
            raise Unreachable(f"{self.where}: {FailurePhrase.NO_ANSWER} {TIMEOUT:g} s to the end of a link")

    def end_session(self, session: Any) -> None:
        """End a session, also one that the broker has ended. What it holds is delivered again."""
        session.close()
        self._session_ended_at = self._loop.time()

    def end(self, error: BrokerError) -> None:
        """Note why the connection and its links are of no use any more; the first reason counts."""
        super().end(error)
        for link in self._links.values():
            link.end(LinkEnded("", str(error)))

    def _send_close(self) -> None:
        self._raw.close()
        self.flush()

    def _begin(self) -> None:
        self._raw.open()
        self._socket.start(self._received, self._hung_up)
        self._beat()

    def _beat(self) -> None:
        self._beating = self._loop.call_later(_BEAT, self._beat)
        self._transport.tick(self._loop.time())
        self._process()
        self.flush()

    async def _session(self) -> Any:
        # The end of a session frees its number. RabbitMQ 4.0 gives what then comes for that number to the session that
        # has just ended, and never answers it (seen in 1 of 70 attaches on a busy machine).
        await self.until(lambda: self._loop.time() >= self._session_ended_at + _FORGOTTEN, _FORGOTTEN)
        if self.closed.done():
            raise self.closed.result()
        session = self._raw.session()
        session.open()
        return session

    def _name(self, what: str) -> str:
        return f"{what}-{next(self._names)}"

    async def _attach(self, link: L) -> L:
        self._links[link.raw.name] = link
        link.raw.open()
        self.flush()
        await self.answer(link.opened, "to the attach of a link")
        # A refused link is attached first, and detached with the next frame.
        await self.until(lambda: link.ended is not None or link.confirmed, TIMEOUT)
        if link.ended is not None:
            raise link.ended
        if not link.confirmed:
            raise Unreachable(f"{self.where}: {FailurePhrase.NO_ANSWER} {TIMEOUT:g} s to the attach of a link")
        return link

    def _received(self, data: bytes, at: float) -> None:
        self.read_at = at
        try:
            while data and (room := self._transport.capacity()) > 0:
                self._transport.push(data[:room])
                data = data[room:]
        except self._proton.TransportException as error:
            self.end(Unreachable(f"{self.where}: the broker sent what is no AMQP 1.0 ({error})"))
        self._process()
        self.flush()
        self._news.set()

    def _hung_up(self, error: OSError | None) -> None:
        if not self._opened.done():
            self.end(Unreachable(f"{self.where}: {FailurePhrase.SILENT_AFTER_CONNECT}; does it speak AMQP 1.0?"))
        why = "the connection was lost" if error is None else f"the connection was lost ({error.strerror or error})"
        self.end(Unreachable(f"{self.where}: {why}"))
        resolve(self._gone, None)
        self._news.set()

    def _process(self) -> None:
        while (event := self._collector.peek()) is not None:
            # The names of proton's own callbacks: on_delivery, on_link_flow, ...
            work = getattr(self, f"_{event.type.method}", None)
            if work is not None:
                work(event)
            self._collector.pop()

    def _on_connection_remote_open(self, _: Any) -> None:
        properties = self._raw.remote_properties or {}
        self.product = f"{properties.get('product', 'unknown')} {properties.get('version', '')}".strip()
        resolve(self._opened, None)

    def _on_connection_remote_close(self, _: Any) -> None:
        condition = self._raw.remote_condition
        if condition is not None:
            self.end(Refused(f"{self.where}: the broker closed the connection ({condition_text(condition)})"))
        self._raw.close()
        resolve(self._gone, None)

    def _on_transport_error(self, event: Any) -> None:
        condition, user = event.transport.condition, self._server.address.username
        if condition is not None and condition.name == _LOGIN_REFUSED:
            why: BrokerError = Refused(f"{self.where}: login refused for user {user!r}; check name and password")
        else:
            why = Unreachable(f"{self.where}: the connection broke ({condition_text(condition)})")
        self.end(why)

    def _on_session_remote_close(self, event: Any) -> None:
        for link in [each for each in self._links.values() if each.raw.session == event.session]:
            link.end(_ending(event.session.remote_condition))
            link.gone = True
            del self._links[link.raw.name]
        self.end_session(event.session)

    def _on_link_remote_open(self, event: Any) -> None:
        link = self._links.get(event.link.name)
        if link is not None:
            link.was_opened()

    def _on_link_remote_close(self, event: Any) -> None:
        link = self._links.get(event.link.name)
        if link is not None:
            link.end(_ending(event.link.remote_condition))
        event.link.close()

    _on_link_remote_detach = _on_link_remote_close

    def _on_link_flow(self, event: Any) -> None:
        link = self._links.get(event.link.name)
        if link is not None:
            link.flowed()

    def _on_delivery(self, event: Any) -> None:
        link = self._links.get(event.link.name)
        if link is not None:
            link.arrived(event.delivery, self.read_at)


def _ending(condition: Any) -> LinkEnded:
    if condition is None:
        return LinkEnded("", "without a reason")
    return LinkEnded(str(condition.name), str(condition.description or ""))
