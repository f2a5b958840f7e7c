"""Stands before Streamlit's server: what the page's own code cannot keep shut, or cannot end.

* Downloads and figures of the server are for those who may see the page.
* A session ends when its time is over or its owner signs out, in the middle of a page that refreshes itself too.
* After signing in, a person is where they wanted to be: Streamlit itself forgets the address.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ackscope.clock import Clock
from dashboard.auth import cookies
from dashboard.auth.access_rules import FAILED, AccessDecision
from dashboard.auth.cookies import SignedInUser
from dashboard.auth.login_file import LoginConfig

_SHUT = ("/media/", "/component/", "/_stcore/")
_OPEN = ("/_stcore/health", "/_stcore/host-config", "/_stcore/stream")
_SIGN_IN, _SIGN_OUT, _BACK = "/auth/login", "/auth/logout", "/oauth2callback"
_FAILED = "=".join(FAILED)
_POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1


class SessionMiddleware:
    """An ASGI application around another.

    Args:
        app: Streamlit's.
        login: who may come in, and the key of the cookies.
        base: the path that the page is served below, without slashes at its ends.
        clock: tells when a session is over.
    """

    def __init__(self, app: ASGIApp, login: LoginConfig, base: str, clock: Clock) -> None:
        self._app, self._login, self._clock = app, login, clock
        self._base = f"/{base}" if base else ""
        self._left: dict[bytes, float] = {}
        """Mark of those who signed out -> when their cookie would have been worth nothing anyway."""
        self._pages: dict[bytes, list[Callable[[], Awaitable[None]]]] = {}
        """Mark of those who are in -> what closes each of their open pages."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let Streamlit answer."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._talk(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HTTPConnection(scope)
        path = scope["path"].removeprefix(self._base)
        who = cookies.person(request.cookies, self._login.cookie_secret)
        admitted = self._judge(who) is AccessDecision.ADMITTED
        if path.startswith(_SHUT) and path not in _OPEN and not admitted:
            await PlainTextResponse("sign in first\n", 401)(scope, receive, send)
            return
        if path == _BACK and not {"code", "error"} & set(request.query_params):
            # Back from signing out at the provider's: there is nothing to read.
            await RedirectResponse(f"{self._base}/", 302)(scope, receive, send)
            return
        if path == _SIGN_OUT:
            await self._forget(who)
        wanted = None if admitted or path.startswith("/auth/") or path == _BACK else _wanted(scope)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if path == _BACK:
                    headers = self._lead(headers, request.cookies)
                if wanted is not None:
                    headers.append(cookies.keep_way(wanted, self._base, secure=self._login.encrypted))
                if self._login.encrypted:
                    headers = cookies.encrypted(headers)
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, _plainly(told) if path == _SIGN_IN else told)

    def _lead(self, headers: list[tuple[bytes, bytes]], asked: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """Back from the provider: to the address that was wanted, or to the door with a word."""
        signed_in = cookies.signs_in(headers)
        place = (cookies.way(asked, self._base) or f"{self._base}/") if signed_in else f"{self._base}/?{_FAILED}"
        led = [(key, place.encode() if key == b"location" else value) for key, value in headers]
        if signed_in:
            led.append(cookies.keep_way("", self._base, secure=self._login.encrypted))
        return led

    async def _talk(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A page that is open, until its session is over."""
        who = cookies.person(HTTPConnection(scope).cookies, self._login.cookie_secret)
        verdict, ends = self._judge(who), self._login.rules.ends(who.claims)
        if verdict is AccessDecision.OVER or who.mark in self._left:
            # As a stranger: Streamlit would take an open page up again for the same person, without asking the gate.
            scope = {**scope, "headers": cookies.without_person(scope["headers"])}
        if verdict is not AccessDecision.ADMITTED or ends is None:
            await self._app(scope, receive, send)
            return
        closed = False

        async def shut() -> None:
            nonlocal closed
            closed = True
            # It may have closed by itself in this moment.
            with suppress(OSError, RuntimeError):
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})

        async def heard() -> Message:
            message = await receive()
            stale = closed and message["type"] == "websocket.receive"
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION} if stale else message

        async def said(message: Message) -> None:
            if not closed:
                await send(message)

        pages = self._pages.setdefault(who.mark, [])
        pages.append(shut)
        timer = asyncio.create_task(_later(ends - self._clock.now().wall, shut))
        try:
            await self._app(scope, heard, said)
        finally:
            timer.cancel()
            pages.remove(shut)
            if not pages:
                self._pages.pop(who.mark, None)

    def _judge(self, who: SignedInUser) -> AccessDecision:
        if who.mark in self._left:
            return AccessDecision.UNKNOWN
        return self._login.rules.judge(who.claims, self._clock.now().wall)

    async def _forget(self, who: SignedInUser) -> None:
        """Somebody signs out: the cookie is worth nothing from now on, and all pages that it opened are closed."""
        now, ends = self._clock.now().wall, self._login.rules.ends(who.claims)
        self._left = {mark: end for mark, end in self._left.items() if end > now}
        if ends is not None and ends > now:
            self._left[who.mark] = ends
        for shut in tuple(self._pages.get(who.mark, ())):
            await shut()


async def _later(seconds: float, do: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await do()


def _wanted(scope: Scope) -> str | None:
    """The address that a browser asks for as a page; None where it asks for a part of one."""
    headers = dict(scope["headers"])
    a_page = headers.get(b"sec-fetch-mode") == b"navigate" or b"text/html" in headers.get(b"accept", b"")
    query = scope["query_string"].decode("latin-1")
    if scope["method"] != "GET" or not a_page or query == _FAILED:
        return None
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    return f"{path}?{query}" if query else path


def _plainly(send: Send) -> Send:
    """Streamlit says "Authentication error" where the provider cannot be asked: say what to do."""
    body = b"The provider that signs people in could not be asked; try again soon. The log of this page says more.\n"
    length = str(len(body)).encode()
    failed = False

    async def told(message: MutableMapping[str, Any]) -> None:
        nonlocal failed
        if message["type"] == "http.response.start" and message["status"] == 400:
            failed = True
            kept = [
                (key, value) for key, value in message["headers"] if key not in (b"content-length", b"content-type")
            ]
            plain = ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length))
            message = {**message, "status": 502, "headers": [*kept, *plain]}
        elif failed:
            message = {"type": "http.response.body", "body": body}
        await send(message)

    return told


class SingleLineErrors(logging.Filter):
    """A record whose error is told in its line, with the provider's address instead of the traceback."""

    def __init__(self, provider: str) -> None:
        super().__init__()
        self._provider = provider

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, shorter."""
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            why = f"{type(error).__name__}: {error}"
            record.msg, record.args = f"{record.getMessage()} ({why}; the provider is {self._provider})", ()
            record.exc_info = record.exc_text = None
        return True
