"""A connection of the stream protocol on the event loop, with exact times.

rstream turns bytes into frames and back. The socket is ours, so that send and receive times are those of the kernel.
"""

import asyncio
import contextlib
import itertools
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ackscope.address import host_and_port
from ackscope.errors import BrokerError, Refused, Unreachable, Unsupported
from ackscope.failures import FailurePhrase
from probes.amqp_errors import explain_open
from probes.parameters import HEARTBEAT, client_properties
from probes.settings import AmqpServer
from probes.streaming.codec import FrameDecoder, Name, NotStreams, library
from probes.timed_connection import TIMEOUT, TimedConnection, resolve
from probes.timed_socket import TimedSocket

_OK = 1
_FRAME_MAX = 1_048_576
_NO_LEADER = 65_535
_PLAIN = "PLAIN"
_NOT_AVAILABLE, _NO_VHOST = 6, 12
_NO_LOGIN = {8, 9, 11}
_CAN_ASK_AGAIN = {2, _NOT_AVAILABLE}


class Member(NamedTuple):
    """A node with a replica of a stream, at the address that it advertises to clients."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


class Members(NamedTuple):
    """The nodes of a stream."""

    leader: Member
    replicas: tuple[Member, ...]


class StreamProtocolConnection(TimedConnection):
    """A connection to one node; made by `StreamProtocolConnection.open`.

    Attributes:
        advertised: the address that the node advertises to clients; None if it tells none.
        frame_max: largest frame in bytes that the broker takes.
        rstream: the library.
    """

    def __init__(self, server: AmqpServer, sock: TimedSocket, rstream: Any) -> None:
        super().__init__(server, sock)
        self.rstream, self._schema = rstream, rstream.schema
        self._decoder = FrameDecoder(rstream)
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._tuned: asyncio.Future[Any] = self._loop.create_future()
        self._received_at = self._loop.time()
        self._heartbeat = HEARTBEAT
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {}
        self.frame_max = _FRAME_MAX
        self.advertised: Member | None = None

    @classmethod
    async def open(cls, server: AmqpServer, name: str) -> "StreamProtocolConnection":
        """Connect to the address of `server`, whose port is that of the stream protocol (`AmqpServer.streams`).

        The broker shows `name` as the name of the connection.

        Raises:
            BrokerError: the connection failed; `Unsupported` if nothing listens at the port.
            ConfigError: the CA file cannot be read.
            MissingPart: the library is not installed.
        """
        rstream = library()
        try:
            async with asyncio.timeout(TIMEOUT):
                sock = await TimedSocket.open(server)
        except OSError as error:
            raise _explain(error, server) from None
        link = cls(server, sock, rstream)
        try:
            sock.start(link._received, link._hung_up)
            await link._log_in(name)
        except BaseException:
            link.cut()
            raise
        return link

    def on_frame(self, kind: type[Any], call: Callable[[Any, float], None]) -> None:
        """Register a callback for frames of one class of rstream's schema; it gets the frame and when it arrived."""
        self._handlers[kind] = call

    def send(self, frame: Any) -> float:
        """Hand a frame to the kernel. Returns when, in monotonic seconds."""
        return self.send_raw(self.rstream.encoding.encode_frame(frame))

    def send_raw(self, data: bytes) -> float:
        """Hand an encoded frame to the kernel. Returns when, in monotonic seconds."""
        return self._socket.send(data) if not self.closed.done() else time.monotonic()

    def request(self, kind: type[Any], *fields: Any) -> asyncio.Future[Any]:
        """Send a request. Returns the future of its response, which never comes if the connection ends."""
        number = next(self._numbers)
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._asked[number] = answer
        answer.add_done_callback(lambda _: self._asked.pop(number, None))
        self.send(kind(number, *fields))
        return answer

    async def ask(self, doing: str, kind: type[Any], *fields: Any) -> Any:
        """Send a request of a class of rstream's schema, and return the response.

        Args:
            doing: what it does, for messages, such as "declaring a publisher".
            kind: the class.
            *fields: its fields after the number of the request.

        Raises:
            Refused: the broker refuses.
            Unreachable: the connection ended first, or the broker does not answer.
        """
        response = await self.answer(self.request(kind, *fields), f"to {doing}")
        code = getattr(response, "response_code", _OK)
        if code != _OK:
            raise self._refused(code, doing)
        return response

    async def members(self, stream: str, within: float = TIMEOUT) -> Members:
        """Return where leader and replicas of a stream are, as the broker says. A new stream has no leader at first.

        Raises:
            Refused: the broker refuses.
            Unreachable: there is no leader in time, or the connection ended.
        """
        deadline = self._loop.time() + within
        doing = f"asking for the nodes of stream {stream!r}"
        while True:
            response = await self.ask(doing, self._schema.Metadata, [Name(stream)])
            found = _members(response)
            if isinstance(found, Members):
                return found
            if found not in _CAN_ASK_AGAIN | {_OK}:
                raise self._refused(found, doing)
            if self._loop.time() >= deadline:
                raise Unreachable(f"{self.where}: stream {stream!r} has no leader")
            await asyncio.sleep(0.1)

    def end_with_stream(self, stream: str) -> None:
        """End this connection when the broker tells that the stream is not there any more: it serves it no longer."""

        def changed(frame: Any, _: float) -> None:
            why = _reason(self.rstream, frame.metadata_info.code)
            self.end(
                Unreachable(f"{self.where}: stream {stream!r} was deleted, or its leader or replica moved ({why})")
            )

        self.on_frame(self._schema.MetadataUpdate, changed)

    def _send_close(self) -> None:
        self.send(self._schema.Close(next(self._numbers), _OK, Name("done")))

    async def _log_in(self, name: str) -> None:
        schema, address = self._schema, self._server.address
        own = [schema.Property(Name(key), Name(value)) for key, value in client_properties(name).items()]
        peer = _properties(await self.ask("the opening of a connection", schema.PeerProperties, own))
        self.product = f"{peer.get('product', 'unknown')} {peer.get('version', '')}".strip()
        offered = (await self.ask("the question for ways to log in", schema.SaslHandshake)).mechanisms
        if _PLAIN not in offered:
            raise Refused(f"{self.where}: the broker offers no login with a password (only {', '.join(offered)})")
        secret = f"\0{address.username}\0{self._server.password()}".encode()
        await self.ask("logging in", schema.SaslAuthenticate, _PLAIN, secret)
        tune = await self.answer(self._tuned, "to logging in")
        self.frame_max = min(tune.frame_max or _FRAME_MAX, _FRAME_MAX)
        self._heartbeat = min(tune.heartbeat or HEARTBEAT, HEARTBEAT)
        self.send(schema.Tune(self.frame_max, self._heartbeat))
        opened = _properties(
            await self.ask(f"opening virtual host {address.vhost!r}", schema.Open, Name(address.vhost))
        )
        with contextlib.suppress(KeyError, ValueError):
            self.advertised = Member(opened["advertised_host"], int(opened["advertised_port"]))
        self._beat()

    def _beat(self) -> None:
        if self._loop.time() - self._received_at > 2 * self._heartbeat:
            seconds = 2 * self._heartbeat
            self.end(Unreachable(f"{self.where}: {FailurePhrase.NO_HEARTBEAT} for {seconds} s; the connection is dead"))
        if self.closed.done():
            return
        self._beating = self._loop.call_later(self._heartbeat / 2, self._beat)
        self.send(self._schema.Heartbeat())

    def _received(self, data: bytes, at: float) -> None:
        self.read_at, self._received_at = at, self._loop.time()
        try:
            for frame in self._decoder.feed(data):
                self._process(frame)
        except NotStreams as error:
            hint = "" if self.product else "; is it the port of the stream protocol (usually 5552)?"
            self.end(Unreachable(f"{self.where}: what answers does not speak the stream protocol ({error}){hint}"))
            self._socket.close()

    def _process(self, frame: Any) -> None:
        schema = self._schema
        answer = self._asked.get(getattr(frame, "correlation_id", 0))
        handler = self._handlers.get(type(frame))
        if isinstance(frame, schema.Close):
            self.send(schema.CloseResponse(frame.correlation_id, _OK))
            self.end(Unreachable(f"{self.where}: the broker closed the connection ({frame.reason})"))
        elif isinstance(frame, schema.CloseResponse):
            resolve(self._gone, None)
        elif isinstance(frame, schema.Tune):
            resolve(self._tuned, frame)
        elif handler is not None:
            handler(frame, self.read_at)
        elif answer is not None:
            resolve(answer, frame)

    def _hung_up(self, error: OSError | None) -> None:
        if self.product:
            why = "the connection was lost" if error is None else f"the connection was lost ({error.strerror or error})"
        else:
            why = "the connection is closed before the login; is it the port of the stream protocol (usually 5552)?"
        self.end(Unreachable(f"{self.where}: {why}"))
        resolve(self._gone, None)

    def _refused(self, code: int, doing: str) -> BrokerError:
        address = self._server.address
        if code in _NO_LOGIN:
            return Refused(f"{self.where}: login refused for user {address.username!r}; check name and password")
        if code == _NO_VHOST:
            return Refused(
                f"{self.where}: user {address.username!r} may not use virtual host {address.vhost!r}, if it exists"
            )
        text = f"{self.where}: the broker refuses {doing} ({_reason(self.rstream, code)})"
        return Unreachable(text) if code in _CAN_ASK_AGAIN else Refused(text)


def _reason(rstream: Any, code: int) -> str:
    """Return the name of a response code, such as "AccessRefused, code 16"."""
    found = rstream.exceptions.ServerError.from_code(code)
    return f"code {code}" if found is rstream.exceptions.ServerError else f"{found.__name__}, code {code}"


def _explain(error: OSError, server: AmqpServer) -> BrokerError:
    # No phrase of `FailurePhrase` for this port: rules would take it for the port of AMQP.
    where = server.address.where
    if isinstance(error, ConnectionRefusedError):
        return Unsupported(
            f"{where}: nothing listens there for the stream protocol; enable the plugin rabbitmq_stream, or set its "
            "port (amqp.stream_port, --stream-port)"
        )
    if isinstance(error, TimeoutError):
        return Unreachable(f"{where}: the port of the stream protocol is silent; check host, port and firewall")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLCertVerificationError):
        return Unreachable(
            f"{where}: no TLS on this port ({error.reason or error}); set the port of streams with TLS (usually 5551)"
        )
    return explain_open(error, server)


def _members(response: Any) -> Members | int:
    """Return the nodes of the only stream of a response; its code if it has no leader now."""
    (stream,) = response.metadata
    if stream.response_code != _OK or stream.leader_ref == _NO_LEADER:
        return int(stream.response_code)
    brokers = {each.reference: Member(each.host, each.port) for each in response.brokers}
    if stream.leader_ref not in brokers:
        return _OK
    replicas = tuple(brokers[reference] for reference in stream.replicas_refs if reference in brokers)
    return Members(brokers[stream.leader_ref], replicas)


def _properties(response: Any) -> Mapping[str, str]:
    return {each.key: each.value for each in response.properties}
