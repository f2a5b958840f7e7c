"""ASGI middleware in front of Streamlit's server, for what the code of a page cannot do.

* Downloads and the server's metrics are only for people with access.
* A session ends when it expires or its owner signs out, also for a page that is open and refreshes itself.
* After signing in, a person returns to the requested address, which Streamlit itself does not store.
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
from dashboard.auth.access_rules import SIGN_IN_FAILED, AccessDecision
from dashboard.auth.cookies import SignedInUser
from dashboard.auth.login_file import LoginConfig

_PROTECTED = ("/media/", "/component/", "/_stcore/")
_PUBLIC = ("/_stcore/health", "/_stcore/host-config", "/_stcore/stream")
_SIGN_IN, _SIGN_OUT, _CALLBACK = "/auth/login", "/auth/logout", "/oauth2callback"
_FAILED_QUERY = "=".join(SIGN_IN_FAILED)
_POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1


class SessionMiddleware:
    """Checks the session of every request and WebSocket before Streamlit sees it.

    Args:
        app: Streamlit's ASGI application.
        login: access rules, and the key of the cookies.
        base: the path below which the dashboard is served, without slashes at its ends.
        clock: decides when a session has expired.
    """

    def __init__(self, app: ASGIApp, login: LoginConfig, base: str, clock: Clock) -> None:
        self._app, self._login, self._clock = app, login, clock
        self._base = f"/{base}" if base else ""
        # Session of each person who signed out -> when its cookie would have expired anyway.
        self._signed_out: dict[bytes, float] = {}
        # Session of each person with access -> functions that close its open pages.
        self._open_pages: dict[bytes, list[Callable[[], Awaitable[None]]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it to Streamlit."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HTTPConnection(scope)
        path = scope["path"].removeprefix(self._base)
        user = cookies.signed_in_user(request.cookies, self._login.cookie_secret)
        admitted = self._check(user) is AccessDecision.ADMITTED
        if path.startswith(_PROTECTED) and path not in _PUBLIC and not admitted:
            await PlainTextResponse("sign in first\n", 401)(scope, receive, send)
            return
        if path == _CALLBACK and not {"code", "error"} & set(request.query_params):
            # The provider redirects here after signing out as well; then the address has no result.
            await RedirectResponse(f"{self._base}/", 302)(scope, receive, send)
            return
        if path == _SIGN_OUT:
            await self._end_session(user)
        signing_in = path.startswith("/auth/") or path == _CALLBACK
        requested = None if admitted or signing_in else _requested_page(scope)

        async def send_response(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if path == _CALLBACK:
                    headers = self._redirect_after_callback(headers, request.cookies)
                if requested is not None:
                    headers.append(cookies.return_cookie(requested, self._base, secure=self._login.encrypted))
                if self._login.encrypted:
                    headers = cookies.with_secure_cookies(headers)
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, _explain_provider_error(send_response) if path == _SIGN_IN else send_response)

    def _redirect_after_callback(
        self, headers: list[tuple[bytes, bytes]], request_cookies: Mapping[str, str]
    ) -> list[tuple[bytes, bytes]]:
        """Redirect after the OIDC callback: to the requested page, or to the sign-in page with an error."""
        signed_in = cookies.sets_identity(headers)
        success = cookies.return_address(request_cookies, self._base) or f"{self._base}/"
        target = success if signed_in else f"{self._base}/?{_FAILED_QUERY}"
        redirected = [(key, target.encode() if key == b"location" else value) for key, value in headers]
        if signed_in:
            redirected.append(cookies.return_cookie("", self._base, secure=self._login.encrypted))
        return redirected

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an open page until its session ends."""
        user = cookies.signed_in_user(HTTPConnection(scope).cookies, self._login.cookie_secret)
        decision, expires = self._check(user), self._login.rules.expires(user.claims)
        if decision is AccessDecision.EXPIRED or user.session_id in self._signed_out:
            # Without the identity: Streamlit would resume an open page of the same person without a new access check.
            scope = {**scope, "headers": cookies.without_identity(scope["headers"])}
        if decision is not AccessDecision.ADMITTED or expires is None:
            await self._app(scope, receive, send)
            return
        closed = False

        async def close() -> None:
            nonlocal closed
            closed = True
            # The browser may have closed the connection at the same moment.
            with suppress(OSError, RuntimeError):
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})

        async def receive_until_closed() -> Message:
            message = await receive()
            late = closed and message["type"] == "websocket.receive"
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION} if late else message

        async def send_until_closed(message: Message) -> None:
            if not closed:
                await send(message)

        pages = self._open_pages.setdefault(user.session_id, [])
        pages.append(close)
        timer = asyncio.create_task(_after(expires - self._clock.now().wall, close))
        try:
            await self._app(scope, receive_until_closed, send_until_closed)
        finally:
            timer.cancel()
            pages.remove(close)
            if not pages:
                self._open_pages.pop(user.session_id, None)

    def _check(self, user: SignedInUser) -> AccessDecision:
        if user.session_id in self._signed_out:
            return AccessDecision.UNKNOWN
        return self._login.rules.check(user.claims, self._clock.now().wall)

    async def _end_session(self, user: SignedInUser) -> None:
        """Invalidate the cookie of a person who signs out, and close all open pages of that session."""
        now, expires = self._clock.now().wall, self._login.rules.expires(user.claims)
        self._signed_out = {session: end for session, end in self._signed_out.items() if end > now}
        if expires is not None and expires > now:
            self._signed_out[user.session_id] = expires
        for close in tuple(self._open_pages.get(user.session_id, ())):
            await close()


async def _after(seconds: float, action: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await action()


def _requested_page(scope: Scope) -> str | None:
    """The address of a page that the browser navigates to; None if it requests a part of a page."""
    headers = dict(scope["headers"])
    a_page = headers.get(b"sec-fetch-mode") == b"navigate" or b"text/html" in headers.get(b"accept", b"")
    query = scope["query_string"].decode("latin-1")
    if scope["method"] != "GET" or not a_page or query == _FAILED_QUERY:
        return None
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    return f"{path}?{query}" if query else path


def _explain_provider_error(send: Send) -> Send:
    """Replace Streamlit's "Authentication error" for an unreachable provider by a text that says what to do."""
    body = b"The sign-in provider cannot be reached. Try again later; the log of the dashboard has the details.\n"
    length = str(len(body)).encode()
    failed = False

    async def send_response(message: MutableMapping[str, Any]) -> None:
        nonlocal failed
        if message["type"] == "http.response.start" and message["status"] == 400:
            failed = True
            others = [
                (key, value) for key, value in message["headers"] if key not in (b"content-length", b"content-type")
            ]
            plain = ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length))
            message = {**message, "status": 502, "headers": [*others, *plain]}
        elif failed:
            message = {"type": "http.response.body", "body": body}
        await send(message)

    return send_response


class SingleLineErrors(logging.Filter):
    """Shortens a log record with a traceback to one line: the error and the address of the provider."""

    def __init__(self, provider: str) -> None:
        super().__init__()
        self._provider = provider

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record; every record passes."""
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            why = f"{type(error).__name__}: {error}"
            record.msg, record.args = f"{record.getMessage()} ({why}; the provider is {self._provider})", ()
            record.exc_info = record.exc_text = None
        return True
