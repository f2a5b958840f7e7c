"""The HTTP server: uvicorn in a thread of its own. It never queries a broker itself."""

import asyncio
import errno
import socket
import ssl
import threading
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from ackscope.address import host_and_port
from ackscope.errors import UsageError
from ackscope.log import get_logger
from exporter.web.app import REQUEST_BYTES, make_app
from exporter.web.config import WebConfig
from exporter.web.connections import MAX_CONNECTIONS, REQUEST_SECONDS, HttpConnection, Room
from exporter.web.gate import is_loopback
from exporter.web.http import Routes
from exporter.web.tls import FollowingContext

log = get_logger(__name__)

_AT_A_TIME = 8
"""Connections accepted in one turn of the event loop, so that each is read before newer ones are accepted."""
_STOP_SECONDS = 1


class HttpServer:
    """Serves a routing table.

    Args:
        listen: (host, port); port 0 picks a free one.
        routes: path -> route; `/` lists them.
        web: TLS and authentication; None means plain HTTP without authentication.
        max_connections: limit; beyond it see `Room`.
        allowed_hosts: names that requests may be for on loopback, besides those of loopback.

    Raises:
        UsageError: the address cannot be used; the message says why and what to do.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        routes: Routes,
        web: WebConfig | None = None,
        max_connections: int = MAX_CONNECTIONS,
        allowed_hosts: tuple[str, ...] = (),
    ) -> None:
        self._web = web or WebConfig()
        app = make_app(routes, self._web, allowed_hosts if is_loopback(listen[0]) else None)
        self._listener = AsgiListener(listen, app, self._web, max_connections)
        self._thread = threading.Thread(target=self._listener.serve_until_stopped, name="http", daemon=True)

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._listener.url

    @property
    def open_connections(self) -> int:
        """Number of open connections."""
        return self._listener.room.count()

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop. Responses in progress get a second; then their connections are closed."""
        self._listener.should_exit = True
        if self._thread.is_alive():
            self._thread.join(2.0 * _STOP_SECONDS + 1)
        self._listener.room.close()


class AsgiListener(uvicorn.Server):
    """Serves an ASGI application on one port.

    Args:
        listen: (host, port); port 0 picks a free one.
        app: the application.
        web: TLS.
        max_connections: limit; beyond it see `Room`.

    Attributes:
        room: the listening socket.
        url: URL of the port.

    Raises:
        UsageError: the address cannot be used; the message says why and what to do.
    """

    def __init__(
        self, listen: tuple[str, int], app: ASGIApp, web: WebConfig, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        config = uvicorn.Config(
            app,
            http=type("HttpConnection", (HttpConnection,), {"web": web}),
            ws="none",
            lifespan="auto",
            log_config=None,
            # What it warns of is what clients do wrong. Defects are logged by the application itself.
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_AT_A_TIME,
            h11_max_incomplete_event_size=REQUEST_BYTES,
            timeout_keep_alive=24 * 3600,  # see HttpConnection
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        config.load()
        super().__init__(config)
        context = web.context()
        if context is not None:
            config.ssl = FollowingContext(ssl.PROTOCOL_TLS_SERVER)
            # TLS is not turned off while the port is open; see WebConfig.
            config.ssl.current = lambda: web.context() or context
        host, port = listen
        self.room = _bound(host, port)
        connections: Any = self.server_state.connections
        self.room.limited(max_connections, connections)
        bound = self.room.getsockname()
        self.url = f"{'http' if context is None else 'https'}://{host_and_port(str(bound[0]), int(bound[1]))}"

    def serve_until_stopped(self) -> None:
        """Serve until `should_exit` is set or, in the main thread, a signal comes."""
        with asyncio.Runner(loop_factory=_Loop) as runner:
            runner.run(self._serve_and_end())

    async def on_tick(self, counter: int) -> bool:
        """Look after time limits; called ten times a second."""
        self.room.sweep()
        return await super().on_tick(counter)

    async def _serve_and_end(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_report)
        await self.serve(sockets=[self.room])
        self.room.end()
        await asyncio.sleep(0.05)  # so that the loop closes them


class _Loop(asyncio.SelectorEventLoop):
    async def create_server(self, *args: Any, **keywords: Any) -> asyncio.Server:
        """As the library, but with a time limit for TLS handshakes, which uvicorn cannot set."""
        limit: dict[str, Any] = {} if keywords.get("ssl") is None else {"ssl_handshake_timeout": REQUEST_SECONDS}
        create: Any = super().create_server
        server: asyncio.Server = await create(*args, **keywords, **limit)
        return server


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001  signature of the library
    """Log what the loop cannot handle. What happens on a connection is the business of its client."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
        log.warning("cannot accept connections", error=error.strerror)
    elif isinstance(error, OSError) or error is None:
        log.debug("client disconnected", error=str(error or context.get("message")))
    else:
        log.error("request failed", exc_info=error)


def _bound(host: str, port: int) -> Room:
    # asyncio sends without delay (TCP_NODELAY) only where the protocol is said. With the delay, each response but the
    # first of a connection takes 40 ms, until the client has acknowledged the headers (uvicorn, issue 3149).
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    room = Room(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        room.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        room.bind((host, port))
        room.listen()
    except OSError as error:
        room.close()
        raise UsageError(f"listen: {host_and_port(host, port)} {_why(error)}") from None
    return room


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "is not an address of this machine; use an address such as 127.0.0.1:9419"
    reason = error.strerror or str(error)
    if reason == "Address already in use":
        return "is already in use; choose another port in `listen`, or stop the other process"
    return f"cannot be used ({reason[0].lower()}{reason[1:]}); choose another address in `listen`"
