"""The HTTP server: a table of paths, each answered from a thread of its own; it never asks a broker itself."""

import gzip
import logging
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ackscope import __version__
from ackscope.errors import UsageError

log = logging.getLogger(__name__)

TEXT, HTML, JSON = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"

_COMPRESS_FROM = 1024
_MOST_PARAMETERS = 20
_SAFE = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("Referrer-Policy", "no-referrer"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks of a path.

    Attributes:
        query: its parameters; the last wins where one is given twice.
        headers: their names in lower case.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path answers."""

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Route:
    """One path: what it is for, and what it answers."""

    about: str
    answer: Callable[[Request], Answer]


Routes = Mapping[str, Route]


class Server:
    """Serves a table of routes from threads of its own.

    Args:
        listen: `host:port`; port 0 takes a free one.
        routes: path -> route; `/` lists them.

    Raises:
        UsageError: the address cannot be listened on; the message says which and what to do.
    """

    def __init__(self, listen: tuple[str, int], routes: Routes) -> None:
        host, port = listen
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        handler = type("Handler", (_Handler,), {"routes": {"/": Route("this page", lambda _: index(routes)), **routes}})
        server = type("Listener", (_Listener,), {"address_family": family})
        try:
            self._server: ThreadingHTTPServer = server((host, port), handler)
        except OSError as error:
            raise UsageError(f"listen: {_where(host, port)} {_why(error)}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="http", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{_where(str(host), int(port))}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End; answers that are under way are not waited for."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(2.0)
        self._server.server_close()


def index(routes: Routes) -> Answer:
    """The page that lists the routes."""
    rows = "".join(f'<li><a href="{path}">{path}</a> {route.about}</li>' for path, route in routes.items())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>ackscope</title>'
        "<style>body{font:16px/1.5 sans-serif;margin:2rem;max-width:50rem}</style>"
        f"<h1>ackscope {__version__}</h1><ul>{rows}</ul></html>\n"
    )
    return Answer(page.encode(), HTML)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # The standard one asks the name server for our own name, which can hang for many seconds.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  the library's signature
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("a client went away: %s", error)
        else:
            log.error("answering a client failed", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    routes: Routes
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ackscope", ""
    timeout = 30  # seconds of silence after which a connection is closed

    def do_GET(self) -> None:
        self._reply(self._answer())

    def do_HEAD(self) -> None:
        self._reply(self._answer())

    def __getattr__(self, name: str) -> Callable[[], None]:
        # The library looks for a `do_` method of whatever word the client sent.
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self.close_connection = True  # its body, if any, is not read
        answer = Answer(b"only GET and HEAD\n", status=HTTPStatus.METHOD_NOT_ALLOWED)
        self._reply(answer, ("Allow", "GET, HEAD"))

    def _answer(self) -> Answer:
        asked = urlsplit(self.path)
        path = asked.path
        route = self.routes.get(path)
        if route is None:
            known = "\n".join(self.routes)
            return Answer(f"no page {path}; there are:\n{known}\n".encode(), status=HTTPStatus.NOT_FOUND)
        try:
            headers = {name.lower(): text for name, text in self.headers.items()}
            return route.answer(Request(parameters(asked.query), headers))
        except Exception:  # The boundary: a defect in one answer must not end the server.
            log.exception("answering %s failed", path)
            return Answer(b"this page failed; the log tells why\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)

    def _reply(self, answer: Answer, *headers: tuple[str, str]) -> None:
        body = answer.body
        self.send_response(answer.status)
        if len(body) >= _COMPRESS_FROM:
            self.send_header("Vary", "Accept-Encoding")
            if accepts_gzip(self.headers.get("Accept-Encoding", "")):
                body = gzip.compress(body, compresslevel=1, mtime=0)
                self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (*_SAFE, *headers):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's signature
        log.debug("%s %s", self.address_string(), format % args)


def parameters(query: str) -> dict[str, str]:
    """The parameters of a query; none of one that has more than anybody needs."""
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS))
    except ValueError:
        return {}


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header takes gzip."""
    for item in header.lower().split(","):
        name, _, rest = item.partition(";")
        if name.strip() == "gzip":
            return rest.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "is not an address of this machine; write an address such as 127.0.0.1:9419"
    reason = error.strerror or str(error)
    if reason == "Address already in use":
        return "is already in use; choose another port in `listen`, or stop what listens there"
    return f"cannot be listened on ({reason[0].lower()}{reason[1:]}); choose another address in `listen`"
