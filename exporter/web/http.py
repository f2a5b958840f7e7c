"""HTTP types: request, response, routing table. `exporter.web` serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    def is_cross_site(self) -> bool:
        """Whether a page of another site made a browser send it."""
        site, origin = self.headers.get("sec-fetch-site"), self.headers.get("origin")
        if site is not None and site not in {"same-origin", "none"}:
            return True
        return origin is not None and origin.partition("://")[2] != self.headers.get("host")


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


@dataclass(frozen=True, slots=True)
class Route:
    """One path: description, handler and methods. GET includes HEAD."""

    summary: str
    handle: Callable[[Request], Response]
    methods: tuple[str, ...] = ("GET",)


Routes = Mapping[str, Route]
