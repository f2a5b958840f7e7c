"""What pages are made of: a request, an answer, a table of routes. `exporter.web` serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

TEXT, HTML, JSON = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks of a path.

    Attributes:
        query: its parameters; the last wins where one is given twice.
        headers: their names in lower case; one that is given several times is joined with commas.
        method: GET for HEAD too.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"


@dataclass(frozen=True, slots=True)
class Response:
    """What a path answers.

    Attributes:
        more: pieces that follow the body; they are sent as they are, not copied together.
        coding: how the bytes are coded already, `identity` for as they are; where it is None the server may compress.
        headers: more of them.
    """

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    chunks: tuple[bytes, ...] = ()
    content_encoding: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """One path: what it is for, what it answers, and to which methods; where GET is, HEAD is too."""

    about: str
    answer: Callable[[Request], Response]
    methods: tuple[str, ...] = ("GET",)


Routes = Mapping[str, Route]
