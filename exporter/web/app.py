"""The HTTP application: checks each request, runs its handler on a thread, sends the answer. It speaks ASGI."""

import gzip
import html
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import parse_qsl

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as AsgiRequest
from starlette.responses import Response as AsgiResponse
from starlette.routing import Route as AsgiRoute
from starlette.types import Receive, Scope, Send

from ackscope import __version__
from ackscope.log import get_logger
from exporter.exposition.encode import accepts_gzip
from exporter.web.answer import ResponseSender
from exporter.web.config import WebConfig
from exporter.web.gate import HostGuard, LoginGate, joined
from exporter.web.http import HTML, Lane, Request, Response, Route, Routes

log = get_logger(__name__)

BODY_BYTES = 64 * 1024
"""Size limit of a request body."""
REQUEST_BYTES = 32 * 1024
"""Size limit of request line and headers; a scraper sends less than 1,000 bytes."""
_DISCARDED = 4 * BODY_BYTES
"""Bytes of a body that is too long that are still read, because a client that is cut off never sees the answer."""
_COMPRESS_FROM = 1024
_MAX_PARAMETERS = 20
_THREADS = {Lane.SCRAPE: 2, Lane.API: 2, Lane.EXCLUSIVE: 1, Lane.OUTWARD: 64}
"""Threads of each lane. Handlers of SCRAPE and API only compute: more threads would not be faster."""
_IN_PROGRESS = {Lane.API: 64, Lane.EXCLUSIVE: 1, Lane.OUTWARD: 64}
"""Requests in a lane at a time, of EXCLUSIVE for each path. The next one gets a 429. Scrapes are never refused."""

_ENDING = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
"""Statuses after which the connection ends: the start of the next request is unknown."""


class Lanes:
    """Threads for handlers, so that `/metrics` waits for no other path. Used in one event loop.

    Args:
        threads: lane -> number of threads.
        in_progress: lane -> number of requests at a time, of EXCLUSIVE for each path.
    """

    def __init__(self, threads: Mapping[Lane, int] = _THREADS, in_progress: Mapping[Lane, int] = _IN_PROGRESS) -> None:
        self._threads = {lane: CapacityLimiter(count) for lane, count in threads.items()}
        self._most, self._count = in_progress, Counter[object]()

    async def run(self, lane: Lane, path: str, work: Callable[[], Response]) -> Response:
        """Run the work in its lane; the response is a 429 if the lane is full."""
        if lane is Lane.NOW:
            return work()
        place = (lane, path) if lane is Lane.EXCLUSIVE else lane
        if self._count[place] >= self._most.get(lane, math.inf):
            text = b"busy with other requests of this kind; retry in a few seconds\n"
            return Response(text, status=HTTPStatus.TOO_MANY_REQUESTS, headers=(("Retry-After", "5"),))
        self._count[place] += 1
        try:
            return await run_sync(work, limiter=self._threads[lane], abandon_on_cancel=True)
        finally:
            self._count[place] -= 1


class _Page:
    """One path."""

    def __init__(self, path: str, route: Route, web: WebConfig, lanes: Lanes) -> None:
        self._path, self._route, self._web, self._lanes = path, route, web, lanes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await _body(AsgiRequest(scope, receive))
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            request = Request(parameters(scope["query_string"].decode("latin-1")), joined(scope), method, body)
            answer = self._refuse(request, scope["http_version"])
            if answer is None:
                lane = Lane.NOW if self._route.at_once(request) else self._route.lane
                answer = await self._lanes.run(lane, self._path, lambda: self._work(request))
        except _TooLong:
            text = f"request body longer than {BODY_BYTES} bytes\n"
            answer = Response(text.encode(), status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except ClientDisconnect:
            log.debug("client disconnected", path=self._path)
            return
        await ResponseSender(answer, self._web.headers, closes=answer.status in _ENDING)(scope, receive, send)

    def _refuse(self, request: Request, version: str) -> Response | None:
        if version not in {"1.0", "1.1"}:
            return Response(b"only HTTP/1.1\n", status=HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if request.method not in self._route.methods:
            return _not_allowed(self._route)
        if (self._route.acts or request.method != "GET") and request.is_cross_site:
            return Response(b"requests of other sites may only read\n", status=HTTPStatus.FORBIDDEN)
        return None

    def _work(self, request: Request) -> Response:
        try:
            return compressed(self._route.handle(request), request.headers.get("accept-encoding", ""))
        except Exception:  # Boundary: a defect in one response must not stop the server.
            log.exception("request failed", path=self._path)
            return Response(b"internal error; see the log of the exporter\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)


def make_app(routes: Routes, web: WebConfig, hosts: tuple[str, ...] | None = None) -> Starlette:
    """The whole application; `/` lists the routes.

    Args:
        routes: path -> route.
        web: users, rate limit and headers.
        hosts: names that requests may be for, besides those of loopback; None for any name.
    """
    pages, lanes = {"/": Route("this page", lambda _: index(routes)), **routes}, Lanes()

    def unknown(request: AsgiRequest, error: Exception) -> AsgiResponse:  # noqa: ARG001  signature of the library
        known = "\n".join(pages)
        text = f"page {request.scope['path']} not found; available:\n{known}\n"
        return ResponseSender(Response(text.encode(errors="replace"), status=HTTPStatus.NOT_FOUND), web.headers)

    guards = [Middleware(HostGuard, hosts), Middleware(LoginGate, web)]
    app = Starlette(
        routes=[AsgiRoute(path, _Page(path, route, web, lanes)) for path, route in pages.items()],
        middleware=guards,
        exception_handlers={HTTPStatus.NOT_FOUND: unknown},
    )
    app.router.redirect_slashes = False
    return app


def index(routes: Routes) -> Response:
    """Return the page that lists the routes."""
    rows = "".join(f'<li><a href="{path}">{path}</a> {html.escape(it.summary)}</li>' for path, it in routes.items())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>ackscope</title>'
        "<style>body{font:16px/1.5 sans-serif;margin:2rem;max-width:50rem}</style>"
        f"<h1>ackscope {__version__}</h1><ul>{rows}</ul></html>\n"
    )
    return Response(page.encode(), HTML)


class _TooLong(Exception):
    """The body of a request exceeds the limit."""


async def _body(asked: AsgiRequest) -> bytes:
    """Return the body.

    Raises:
        _TooLong: it exceeds the limit.
        ClientDisconnect: it is truncated.
    """
    body, size = bytearray(), 0
    async for piece in asked.stream():
        size += len(piece)
        if size <= BODY_BYTES:
            body += piece
        elif size > _DISCARDED:
            break
    if size > BODY_BYTES:
        raise _TooLong
    return bytes(body)


def _not_allowed(route: Route) -> Response:
    methods = [word for method in route.methods for word in ((method, "HEAD") if method == "GET" else (method,))]
    return Response(
        f"only {' and '.join(methods)}\n".encode(),
        status=HTTPStatus.METHOD_NOT_ALLOWED,
        headers=(("Allow", ", ".join(methods)),),
    )


def compressed(answer: Response, accept_encoding: str) -> Response:
    """The response, compressed if it is long, not compressed yet, and the client takes it."""
    pieces = [answer.body, *answer.chunks]
    if answer.content_encoding is not None or sum(map(len, pieces)) < _COMPRESS_FROM:
        return answer
    answer = replace(answer, headers=(("Vary", "Accept-Encoding"), *answer.headers))
    if not accepts_gzip(accept_encoding):
        return answer
    packed = gzip.compress(b"".join(pieces), compresslevel=1, mtime=0)
    return replace(answer, body=packed, chunks=(), content_encoding="gzip")


def parameters(query: str) -> dict[str, str]:
    """Return the query parameters; an empty dict if there are too many."""
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS))
    except ValueError:
        return {}
