"""The web server of the dashboard: Streamlit, configured to make no other network calls.

The server calls the exporter and, with a login, the sign-in provider. A viewer's browser calls only the server and,
to sign in, the provider.
"""

import asyncio
import base64
import hashlib
import importlib
import logging
import re
import signal
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import streamlit as st
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ackscope import tuning
from ackscope.log import get_logger
from dashboard.auth.login_file import LoginConfig
from dashboard.frame import scripts
from dashboard.settings import PageSettings

_LOG = get_logger(__name__)

SCRIPT = Path(__file__).with_name("app.py")

# Options of Streamlit. With a light and a dark theme and no base theme, it follows the browser.
CONFIG = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "logger.hideWelcomeMessage": True,
    # Streamlit would run the garbage collector after every script run; `_collect_garbage` does so once for all viewers.
    "runner.postScriptGC": False,
    "server.enableStaticServing": False,
    "server.enableXsrfProtection": True,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.runOnSave": False,
    "theme.baseRadius": "0.4rem",
    "theme.headingFontWeights": [650, 650, 600],
    "theme.headingFontSizes": ["2rem", "1.7rem", "1.25rem"],
    "theme.metricValueFontSize": "1.35rem",
    "theme.light.primaryColor": "#1b639f",
    "theme.light.backgroundColor": "#fcfcfb",
    "theme.light.secondaryBackgroundColor": "#f1f2f3",
    "theme.light.textColor": "#1c2127",
    "theme.dark.primaryColor": "#5aa9e6",
    "theme.dark.backgroundColor": "#14171b",
    "theme.dark.secondaryBackgroundColor": "#20252b",
    "theme.dark.textColor": "#e4e7ea",
}

# Seconds between garbage collections, which take about 0.2 s each. Only ended sessions need them, as reference cycles.
_COLLECT_SECONDS = 60.0


def serve(settings: PageSettings, host: str, port: int, base: str = "", login: LoginConfig | None = None) -> None:
    """Serve until SIGTERM or SIGINT, below the path `base`, to people with access by `login`.

    Raises:
        SystemExit: with 0, on the signal.
    """

    @asynccontextmanager
    async def lifespan(_: st.App) -> AsyncIterator[dict[str, Any] | None]:
        _import_pages()
        send_without_delay(asyncio.get_running_loop())
        collecting = asyncio.create_task(_collect_garbage())
        url_host = f"[{host}]" if ":" in host else host
        url = f"http://{url_host}:{port}/{base}".rstrip("/")
        _LOG.info(
            "serving the dashboard",
            url=url,
            exporter=settings.exporter,
            rollups=str(settings.rollups) if settings.has_rollups else "none",
        )
        yield None
        collecting.cancel()

    tuning.tune()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server closes its sessions on a signal, then raises the signal again; this handler receives it.
        signal.signal(number, _exit)
    # Streamlit puts the folder of argv[0] first on the import path; this folder is already on it.
    sys.argv = [str(SCRIPT.parent.parent / "ackscope")]
    middleware = [Middleware(_SecurityHeaders, policy=content_policy())]
    # Nothing is read for people without access.
    if not settings.has_login:
        middleware.append(Middleware(EarlyRead, read=partial(_read_exporter, settings.exporter)))
    if login is not None:
        _quiet_login_logs(login)
    app = st.App(
        SCRIPT, lifespan=lifespan, middleware=middleware, secrets=None if login is None else dict(login.secrets())
    )
    app.run(config={**CONFIG, "server.address": host, "server.port": port, "server.baseUrlPath": base})


def _import_pages() -> None:
    """Import the pages (pandas, plotly, pyarrow: seconds) before the first viewer arrives."""
    importlib.import_module("dashboard.pages")
    tuning.freeze_gc()


def send_without_delay(loop: asyncio.AbstractEventLoop) -> None:
    """Make servers of the loop set TCP_NODELAY for the sockets they are given; accepted connections inherit it.

    Streamlit binds its socket without a protocol, and asyncio sets the option only for `IPPROTO_TCP`. Without it each
    response but the first of a connection takes 40 ms, until the browser has acknowledged the headers (uvicorn,
    issue 3149). A page is 140 files.
    """
    create: Any = loop.create_server

    async def create_server(*args: Any, sock: socket.socket | None = None, **keywords: Any) -> asyncio.Server:
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server: asyncio.Server = await create(*args, sock=sock, **keywords)
        return server

    loop.create_server = create_server  # type: ignore[method-assign]


async def _collect_garbage() -> None:
    while True:
        await asyncio.sleep(_COLLECT_SECONDS)
        tuning.collect_cycles()


def _quiet_login_logs(login: LoginConfig) -> None:
    """Log one line for each failed sign-in, and no deprecation warnings of libraries."""
    logging.getLogger(f"{st.__name__}.web.server.starlette.starlette_auth_routes").addFilter(
        _SingleLineErrors(login.metadata_url)
    )
    from authlib.deprecate import AuthlibDeprecationWarning  # noqa: PLC0415  only needed with a login

    with warnings.catch_warnings():
        # Authlib warns at import that it prefers httpx2; Streamlit requires httpx.
        warnings.simplefilter("ignore", AuthlibDeprecationWarning)
        importlib.import_module("authlib.integrations.starlette_client")


def _exit(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def content_policy() -> str:
    """The Content-Security-Policy: nothing from other hosts, and no scripts except Streamlit's files.

    Inline scripts of Streamlit's index page, and those of the dashboard, are allowed by their hashes.
    Streamlit creates styles in the browser, so inline styles have to be allowed.
    """
    index = (Path(st.__file__).parent / "static" / "index.html").read_text()
    inline = re.findall(r"<script>(.*?)</script>", "".join((index, *scripts.ALL)), re.DOTALL)
    digests = (hashlib.sha256(text.encode()).digest() for text in inline)
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return "; ".join(
        (
            "default-src 'self'",
            " ".join(["script-src 'self'", *hashes]),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        )
    )


class _SecurityHeaders:
    """Adds the content policy and other security headers to every response."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class EarlyRead:
    """Reads the state of the exporter as soon as a browser asks for a page.

    The browser then still has to load Streamlit, for most of a second, before it can run the page.
    """

    def __init__(self, app: ASGIApp, read: Callable[[], object]) -> None:
        self._app = app
        self._read = read
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="early-read")
        self._last: Future[object] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the response on; the reading does not delay it."""

        async def send_and_read(message: Message) -> None:
            idle = self._last is None or self._last.done()
            if message["type"] == "http.response.start" and _is_page(message) and idle:
                self._last = self._reader.submit(self._read)
            await send(message)

        await self._app(scope, receive, send_and_read if scope["type"] == "http" else send)


def _read_exporter(url: str) -> None:
    from dashboard.ui import cache  # noqa: PLC0415  imported with the pages, once the server runs

    cache.exporter_state(url)


def _is_page(start: Message) -> bool:
    return start["status"] == HTTPStatus.OK and Headers(raw=start["headers"]).get("content-type", "").startswith(
        "text/html"
    )


class _SingleLineErrors(logging.Filter):
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
