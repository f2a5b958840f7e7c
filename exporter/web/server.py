"""The HTTP server: routes requests, one thread per connection. It never queries a broker itself."""

import contextlib
import errno
import html
import socket
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from typing import Any

from ackscope import __version__
from ackscope.errors import UsageError
from ackscope.log import get_logger
from exporter.web.config import WebConfig
from exporter.web.connections import MAX_CONNECTIONS, OpenConnections
from exporter.web.handler import HttpHandler
from exporter.web.http import HTML, Response, Route, Routes

log = get_logger(__name__)

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 21\r\n\r\ntoo many connections\n"
)


_FULL_SECONDS = 60.0


class HttpServer:
    """Serves a routing table.

    Args:
        listen: (host, port); port 0 picks a free one.
        routes: path -> route; `/` lists them.
        web: TLS and authentication; None means plain HTTP without authentication.
        max_connections: limit; beyond it see `OpenConnections`, or the new connection gets a 503.

    Raises:
        UsageError: the address cannot be used; the message says why and what to do.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        routes: Routes,
        web: WebConfig | None = None,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        host, port = listen
        self._web, self._connections = web or WebConfig(), OpenConnections(max_connections)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        pages = {"/": Route("this page", lambda _: index(routes)), **routes}
        parts = {"routes": pages, "web": self._web, "connections": self._connections}
        handler = type("HttpHandler", (HttpHandler,), parts)
        server = type("Listener", (_Listener,), {"address_family": family, "connections": self._connections})
        try:
            self._server: _Listener = server((host, port), handler)
        except OSError as error:
            raise UsageError(f"listen: {_where(host, port)} {_why(error)}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="http", daemon=True
        )

    @property
    def url(self) -> str:
        """URL of the server."""
        host, port = self._server.server_address[:2]
        return f"{'https' if self._web.tls else 'http'}://{_where(str(host), int(port))}"

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop without waiting for responses in progress."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(2.0)
        self._server.server_close()
        self._connections.close()


def index(routes: Routes) -> Response:
    """Return the page that lists the routes."""
    rows = "".join(f'<li><a href="{path}">{path}</a> {html.escape(it.summary)}</li>' for path, it in routes.items())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>ackscope</title>'
        "<style>body{font:16px/1.5 sans-serif;margin:2rem;max-width:50rem}</style>"
        f"<h1>ackscope {__version__}</h1><ul>{rows}</ul></html>\n"
    )
    return Response(page.encode(), HTML)


class _Listener(ThreadingHTTPServer):
    connections: OpenConnections
    warned_at = float("-inf")
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        # The base class resolves our own name through DNS, which can hang for many seconds.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                log.warning("cannot accept connections", error=error.strerror)
                time.sleep(0.1)  # the client stays in the accept queue: without a pause this loop would spin
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.connections.enter(request):
            self.warn_full()
            request.setblocking(False)
            with contextlib.suppress(OSError):
                request.send(_FULL)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.connections.leave(request)
            raise

    def warn_full(self) -> None:
        # Rate-limited, because many connections must not fill the log.
        now = time.monotonic()
        if now - self.warned_at > _FULL_SECONDS:
            self.warned_at = now
            log.warning("connection limit reached; rejecting clients with 503", count=len(self.connections))

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  signature of the library
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("client disconnected", error=str(error))
        else:
            log.error("request failed", exc_info=error)


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "is not an address of this machine; use an address such as 127.0.0.1:9419"
    reason = error.strerror or str(error)
    if reason == "Address already in use":
        return "is already in use; choose another port in `listen`, or stop the other process"
    return f"cannot be used ({reason[0].lower()}{reason[1:]}); choose another address in `listen`"
