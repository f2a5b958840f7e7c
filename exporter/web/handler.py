"""One HTTP/1.1 connection: requests in sequence, and their responses."""

import contextlib
import gzip
import io
import socket
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ackscope.log import get_logger
from exporter.exposition.encode import accepts_gzip
from exporter.web.config import WebConfig
from exporter.web.connections import OpenConnections
from exporter.web.http import Request, Response, Route, Routes
from exporter.web.reader import IDLE_SECONDS, REQUEST_BYTES, REQUEST_SECONDS, RequestReader, RequestTooLarge

log = get_logger(__name__)

SEND_SECONDS = 60.0
"""Time limit in seconds to send a response. A slower scrape has timed out, and the response occupies memory."""
_BODY_BYTES = 64 * 1024
_LINE_BYTES = 8 * 1024
_LINGER_SECONDS, _LINGER_READS = 0.5, 8
_COMPRESS_FROM = 1024
_MAX_PARAMETERS = 20
_CHUNK = 256 * 1024
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",
}


class _Refused(Exception):
    """Malformed request. The connection closes after the response: the start of the next request is unknown."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.answer = Response(f"{text}\n".encode(), status=status)


class HttpHandler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.1. Subclassed for each server, with its routes."""

    routes: Routes
    web: WebConfig
    connections: OpenConnections
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the last chunk would wait for the client's ACK of earlier ones
    _refused = False

    def setup(self) -> None:
        """Set up the connection, TLS handshake included.

        Raises:
            OSError: the handshake failed or timed out.
        """
        self._plain: socket.socket = self.request
        self._plain.settimeout(REQUEST_SECONDS)
        self.request = self.web.wrap(self._plain)
        self.connections.replace(self._plain, self.request)
        super().setup()
        self._reader = RequestReader(self.connection)
        self.rfile.close()
        self.rfile = self._buffer = io.BufferedReader(self._reader)

    def handle(self) -> None:
        """Serve requests until either side closes the connection."""
        idle = REQUEST_SECONDS
        self.close_connection = False
        while not self.close_connection:
            self._reader.begin(idle)
            idle = IDLE_SECONDS
            self.handle_one_request()

    def finish(self) -> None:
        """Close the connection including TLS, because the server only knows the socket below TLS."""
        super().finish()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
            # Read what the client still sends for a moment: after a TCP reset it could not read the last response.
            self.connection.settimeout(_LINGER_SECONDS)
            for _ in range(_LINGER_READS if self._refused else 0):
                if not self.connection.recv(_CHUNK):
                    break
        self.connection.close()

    def handle_one_request(self) -> None:
        """Read one request and answer it."""
        self.command, self.requestline, self.request_version = "", "", "HTTP/1.1"
        self.close_connection = True
        try:
            self.connections.idle(self._plain, idle=True)
            if not self._buffer.peek(1):
                return
            self.raw_requestline = self.rfile.readline(_LINE_BYTES + 1)
            if len(self.raw_requestline) > _LINE_BYTES:
                raise _Refused(HTTPStatus.REQUEST_URI_TOO_LONG, f"request line longer than {_LINE_BYTES} bytes")  # noqa: TRY301
            if self.parse_request():
                self._check()
                self.connections.idle(self._plain, idle=False)
                self._reply(self._answer())
        except _Refused as refused:
            self._refuse(refused.answer)
        except RequestTooLarge:
            text = f"request headers longer than {REQUEST_BYTES} bytes\n"
            self._refuse(Response(text.encode(), status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        except TimeoutError:
            self.close_connection = True
            log.debug("client timed out", client=self.address_string())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002  signature of the library
        """Answer errors that the library detects, with our own text and headers."""
        status = HTTPStatus(code)
        self._refuse(Response(f"{status.phrase.lower()}\n".encode(), status=status))

    def _refuse(self, answer: Response) -> None:
        self.close_connection = self._refused = True
        self.request_version = "HTTP/1.1"  # whatever the client sent, because our response has headers
        self._reply(answer)

    def _check(self) -> None:
        """Check the request and read its body, so that the next request starts after it.

        Raises:
            _Refused: the end of the request cannot be determined.
            TimeoutError: the request is truncated. The library does not detect that: it accepts partial headers.
        """
        if self._reader.ended:
            raise TimeoutError("the client closed the connection within a request")
        if self.request_version == "HTTP/0.9":
            raise _Refused(HTTPStatus.BAD_REQUEST, "HTTP/0.9 is not supported")
        if self.headers.defects:
            # The library ends the headers at a malformed line, so a later Content-Length would be missed.
            raise _Refused(HTTPStatus.BAD_REQUEST, "malformed header line")
        if self.request_version == "HTTP/1.0":
            self.close_connection = True
        elif len(self.headers.get_all("Host", [])) != 1:
            raise _Refused(HTTPStatus.BAD_REQUEST, "exactly one Host header is required")
        lengths = set(self.headers.get_all("Content-Length", ["0"]))
        if "Transfer-Encoding" in self.headers:
            raise _Refused(HTTPStatus.NOT_IMPLEMENTED, "Transfer-Encoding is not supported; send a Content-Length")
        length = lengths.pop()
        if lengths or not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.BAD_REQUEST, "malformed Content-Length")
        if len(length) > 9 or int(length) > _BODY_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"request body longer than {_BODY_BYTES} bytes")
        self._reader.allow(int(length))
        self._body = self.rfile.read(int(length))
        if len(self._body) < int(length):
            raise TimeoutError("the client closed the connection within a request")

    def _answer(self) -> Response:
        headers: dict[str, str] = {}
        for written, text in self.headers.items():
            name = written.lower()
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        try:
            url = urlsplit(self.path)
        except ValueError:
            raise _Refused(HTTPStatus.BAD_REQUEST, "malformed request path") from None
        try:
            refusal = self.web.refuse(headers)
            if refusal is not None:
                return refusal
            route = self.routes.get(url.path)
            if route is None:
                return self._unknown(url.path)
            method = "GET" if self.command == "HEAD" else self.command
            if method not in route.methods:
                return _not_allowed(route)
            request = Request(parameters(url.query), headers, method, self._body)
            if method != "GET" and request.is_cross_site:
                return Response(b"requests of other sites may only read\n", status=HTTPStatus.FORBIDDEN)
            return route.handle(request)
        except Exception:  # Boundary: a defect in one response must not stop the server.
            log.exception("request failed", path=url.path)
            return Response(b"internal error; see the log of the exporter\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)

    def _unknown(self, path: str) -> Response:
        known = "\n".join(self.routes)
        return Response(f"page {path} not found; available:\n{known}\n".encode(), status=HTTPStatus.NOT_FOUND)

    def _reply(self, answer: Response) -> None:
        pieces, content_encoding = [answer.body, *answer.chunks], answer.content_encoding
        headers = {**_SAFE, "Content-Type": answer.content_type, **self.web.headers}
        if content_encoding is None and sum(map(len, pieces)) >= _COMPRESS_FROM:
            headers["Vary"] = "Accept-Encoding"
            if accepts_gzip(getattr(self, "headers", {}).get("Accept-Encoding", "")):
                pieces, content_encoding = [gzip.compress(b"".join(pieces), compresslevel=1, mtime=0)], "gzip"
        if content_encoding not in {None, "identity"}:
            headers["Content-Encoding"] = str(content_encoding)
        if self.close_connection:
            headers["Connection"] = "close"
        self.send_response(answer.status)
        for name, value in {**headers, **dict(answer.headers)}.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(sum(map(len, pieces))))
        head = b"".join([*getattr(self, "_headers_buffer", []), b"\r\n"])
        self._headers_buffer: list[bytes] = []
        self._send([head] if self.command == "HEAD" else [head, *pieces])

    def _send(self, pieces: list[bytes]) -> None:
        """Send the chunks; raises TimeoutError if the client is too slow."""
        until = time.monotonic() + SEND_SECONDS
        for chunk in chunks(pieces):
            rest = memoryview(chunk)
            # Not sendall: with TLS, its timeout restarts every 16 KiB.
            while rest:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError("the client read its response too slowly")
                self.connection.settimeout(left)
                rest = rest[self.connection.send(rest) :]

    def version_string(self) -> str:
        """The Server header, without a version."""
        return "ackscope"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  signature of the library
        """Log requests at debug level only."""
        log.debug("request", client=self.address_string(), line=ascii(format % args))


def _not_allowed(route: Route) -> Response:
    methods = [word for method in route.methods for word in ((method, "HEAD") if method == "GET" else (method,))]
    return Response(
        f"only {' and '.join(methods)}\n".encode(),
        status=HTTPStatus.METHOD_NOT_ALLOWED,
        headers=(("Allow", ", ".join(methods)),),
    )


def chunks(pieces: list[bytes]) -> Iterator[bytes]:
    """Join small chunks and pass on large ones, for few system calls and little copying."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        if len(piece) >= _CHUNK:
            yield from ([b"".join(small)] if small else [])
            yield piece
            small, size = [], 0
            continue
        small.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)


def parameters(query: str) -> dict[str, str]:
    """Return the query parameters; an empty dict if there are too many."""
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS))
    except ValueError:
        return {}
