"""Sends a response through ASGI."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from starlette.responses import Response as AsgiResponse
from starlette.types import Receive, Scope, Send

from exporter.web.http import Response

_BLOCK = 256 * 1024
SAFE = {
    "Server": "ackscope",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",
}
"""Headers of every response, unless the web configuration changes them."""
BUSY = "busy"
"""Key in the state of a request: whether the answer is that the exporter is busy."""
_NONE: Mapping[str, str] = {}


class ResponseSender(AsgiResponse):
    """Sends a response in blocks, each when the client has taken the one before.

    Args:
        answer: the response.
        headers: headers of every response; an empty value removes a default header.
        closes: whether the connection ends after it.
    """

    def __init__(self, answer: Response, headers: Mapping[str, str] = _NONE, *, closes: bool = False) -> None:
        self.status_code, self.background = int(answer.status), None
        self._pieces = [answer.body, *answer.chunks]
        shown = {**SAFE, "Content-Type": answer.content_type, **headers, **dict(answer.headers)}
        if answer.content_encoding not in {None, "identity"}:
            shown["Content-Encoding"] = str(answer.content_encoding)
        shown["Content-Length"] = str(sum(map(len, self._pieces)))
        if closes:
            shown["Connection"] = "close"
        self.raw_headers = [(name.lower().encode(), text.encode()) for name, text in shown.items() if text]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  signature of the library
        """Send it."""
        scope.setdefault("state", {})[BUSY] = self.status_code == HTTPStatus.TOO_MANY_REQUESTS
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for block in blocks(self._pieces if scope["method"] != "HEAD" else []):
            await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def blocks(pieces: list[bytes]) -> Iterator[bytes | memoryview]:
    """Join small pieces and divide large ones, for few system calls, little copying, and turns for other clients."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        if len(piece) >= _BLOCK:
            yield from ([b"".join(small)] if small else [])
            view = memoryview(piece)
            yield from (view[start : start + _BLOCK] for start in range(0, len(piece), _BLOCK))
            small, size = [], 0
            continue
        small.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)
