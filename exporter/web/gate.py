"""Checks that precede every path: the name that a request is for, rate limit, users. Middleware of ASGI."""

import ipaddress
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from anyio import CapacityLimiter, Event
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.web.answer import ResponseSender
from exporter.web.config import WebConfig
from exporter.web.http import Request, Response

_HOST = re.compile(r"(\[[^\]]+\]|[^:]+)(?::\d+)?")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    name = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def joined(scope: Scope) -> dict[str, str]:
    """The headers of a request: names in lower case, repeated ones joined with commas."""
    headers: dict[str, str] = {}
    for raw_name, raw in scope["headers"]:
        name, text = raw_name.decode("latin-1").lower(), raw.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


class HostGuard:
    """On loopback, answers only what is for loopback, and no scripts of other sites.

    A page of any site can make the browser of an engineer send requests to 127.0.0.1, and by DNS rebinding read the
    answers under the name of that site.

    Args:
        app: what it guards.
        hosts: names that requests may be for, besides those of loopback; None if the port is not only on loopback.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] | None) -> None:
        self._app, self._hosts = app, None if hosts is None else {name.lower() for name in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request or refuse it."""
        refusal = self.refuse(joined(scope)) if scope["type"] == "http" and self._hosts is not None else None
        await (self._app if refusal is None else ResponseSender(refusal))(scope, receive, send)

    def refuse(self, headers: Mapping[str, str]) -> Response | None:
        """Return the response to a refused request; None if the request is accepted.

        Args:
            headers: names in lower case.
        """
        host = headers.get("host")
        # Clients of HTTP/1.0 may send no Host; browsers always send it.
        if host is not None and not self._known(host):
            text = f"host {host[:200]!a} is not served on loopback; add it to allowed_hosts if it should be\n"
            return Response(text.encode(), status=HTTPStatus.MISDIRECTED_REQUEST)
        if Request({}, headers).is_of_other_origin:
            return Response(b"scripts of other sites are not answered\n", status=HTTPStatus.FORBIDDEN)
        return None

    def _known(self, host: str) -> bool:
        found = _HOST.fullmatch(host.lower())
        return found is not None and (is_loopback(found[1]) or found[1] in (self._hosts or ()))


class LoginGate:
    """Admits requests of users, within the rate limit.

    Passwords that are not known yet are hashed one at a time, because each costs 0.1 s: of each client address one,
    and the next one gets a 429 at once. Requests with the same credentials wait for the same hash.

    Args:
        app: what it guards.
        web: users and rate limit.
    """

    def __init__(self, app: ASGIApp, web: WebConfig) -> None:
        self._app, self._web = app, web
        self._hashing = CapacityLimiter(1)
        self._logins: dict[str, tuple[str, Event]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on an admitted request, answer another."""
        refusal = None
        if scope["type"] == "http":
            client: Any = scope.get("client") or ("", 0)
            refusal = await self._refuse(joined(scope), str(client[0]))
        await (self._app if refusal is None else ResponseSender(refusal, self._web.headers))(scope, receive, send)

    async def _refuse(self, headers: Mapping[str, str], client: str) -> Response | None:
        given = headers.get("authorization", "")
        if not self._web.must_hash(given):
            return self._web.refuse(headers)
        if client in self._logins:
            waiting, done = self._logins[client]
            if waiting != given:
                return _busy()
            await done.wait()
            # A wrong password is not remembered, and would be hashed again.
            return _busy() if self._web.must_hash(given) else self._web.refuse(headers)
        if len(self._logins) >= _LOGINS:
            return _busy()
        done = Event()
        self._logins[client] = (given, done)
        try:
            return await run_sync(self._web.refuse, headers, limiter=self._hashing, abandon_on_cancel=True)
        finally:
            del self._logins[client]
            done.set()


_LOGINS = 16
"""Clients whose passwords wait to be hashed, at most: the last one waits for two seconds."""


def _busy() -> Response:
    text = b"busy with the passwords of other requests; retry in a second\n"
    return Response(text, status=HTTPStatus.TOO_MANY_REQUESTS, headers=(("Retry-After", "1"),))
