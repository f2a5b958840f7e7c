"""HTTP types: request, response, routing table. `exporter.web` serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus

TEXT, HTML, JSON = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        query: parameters; the last value of a repeated one.
        headers: names in lower case; repeated headers are joined with commas.
        method: HTTP method; GET for HEAD.
        body: content of the request.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes = b""

    @property
    def is_of_other_origin(self) -> bool:
        """Whether a script of another site made a browser send it."""
        origin = self.headers.get("origin")
        return origin is not None and origin.partition("://")[2] != self.headers.get("host")

    @property
    def is_cross_site(self) -> bool:
        """Whether a page of another site made a browser send it, by a script, a form, a picture or a link."""
        site = self.headers.get("sec-fetch-site")
        return (site is not None and site not in {"same-origin", "none"}) or self.is_of_other_origin


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    Attributes:
        body: first chunk.
        content_type: value of the Content-Type header.
        status: HTTP status.
        chunks: further chunks after the body, sent without being joined.
        content_encoding: encoding of the bytes, `identity` if none; None lets the server compress.
        headers: additional headers.
    """

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    chunks: tuple[bytes, ...] = ()
    content_encoding: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Lane(Enum):
    """Where a handler runs. No lane waits for another one.

    Attributes:
        NOW: in the event loop; for handlers that take microseconds.
        SCRAPE: threads that only scrapes use.
        API: threads of handlers that answer from memory.
        EXCLUSIVE: one request of the path at a time; the next one gets a 429.
        OUTWARD: threads of handlers that wait for a broker or a process.
    """

    NOW = "now"
    SCRAPE = "scrape"
    API = "api"
    EXCLUSIVE = "exclusive"
    OUTWARD = "outward"


@dataclass(frozen=True, slots=True)
class Route:
    """One path: description, handler and methods. GET includes HEAD.

    Attributes:
        lane: where the handler runs.
        at_once: whether a request can be answered in the event loop, as in the lane NOW.
        acts: whether also a GET does something, so that pages of other sites must not make browsers send it.
    """

    summary: str
    handle: Callable[[Request], Response]
    methods: tuple[str, ...] = ("GET",)
    lane: Lane = Lane.API
    at_once: Callable[[Request], bool] = lambda _: False
    acts: bool = False


Routes = Mapping[str, Route]
"""Path -> route."""
