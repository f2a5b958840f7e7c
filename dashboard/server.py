"""The page's web server: Streamlit, told to keep to itself.

It calls the exporter, and with a login the provider; a viewer's browser calls only it, and to sign in the provider.
"""

import asyncio
import base64
import hashlib
import importlib
import logging
import re
import signal
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ackscope import tuning
from ackscope.clock import SystemClock
from dashboard.auth.login_file import LoginConfig
from dashboard.auth.session_middleware import SessionMiddleware, SingleLineErrors
from dashboard.settings import PageSettings

_LOG = logging.getLogger(__name__)

PAGE = Path(__file__).with_name("app.py")

CONFIG = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "logger.hideWelcomeMessage": True,
    # It would look for cycles in all there is after every run of every viewer; `_tidy` does, once for all.
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
"""Options of Streamlit; with a light and a dark theme and no base, it follows the browser."""

_TIDY_EVERY = 60.0
"""Seconds. Sessions that ended are cycles; what a page reads is none, and each look at all of it takes 0.2 s or so."""


def serve(settings: PageSettings, host: str, port: int, base: str = "", login: LoginConfig | None = None) -> None:
    """Serve until SIGTERM or SIGINT, below the path `base`, to those whom `login` lets in.

    Raises:
        SystemExit: with 0, on the signal.
    """

    @asynccontextmanager
    async def announce(_: st.App) -> AsyncIterator[dict[str, Any] | None]:
        _prepare()
        tidying = asyncio.create_task(_tidy())
        where = f"[{host}]" if ":" in host else host
        url = f"http://{where}:{port}/{base}".rstrip("/")
        _LOG.info("serving %s (exporter %s, rollups %s)", url, settings.exporter, settings.rollups)
        yield None
        tidying.cancel()

    tuning.tune()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server closes its sessions on a signal and then raises it again: this is where it arrives.
        signal.signal(number, _end)
    # Streamlit puts the folder of argv[0] first on the import path; this one is on it already.
    sys.argv = [str(PAGE.parent.parent / "ackscope")]
    middleware = [Middleware(_Guard, policy=content_policy())]
    if login is not None:
        middleware.append(Middleware(SessionMiddleware, login=login, base=base, clock=SystemClock()))
        _hush(login)
    app = st.App(
        PAGE, lifespan=announce, middleware=middleware, secrets=None if login is None else dict(login.secrets())
    )
    app.run(config={**CONFIG, "server.address": host, "server.port": port, "server.baseUrlPath": base})


def _prepare() -> None:
    """Import the pages (pandas, plotly, pyarrow: seconds), not while the first viewer waits."""
    importlib.import_module("dashboard.pages")
    tuning.settle()


async def _tidy() -> None:
    while True:
        await asyncio.sleep(_TIDY_EVERY)
        tuning.tidy()


def _hush(login: LoginConfig) -> None:
    """One line for each failure of signing in, and none for what only the makers of libraries can change."""
    logging.getLogger(f"{st.__name__}.web.server.starlette.starlette_auth_routes").addFilter(
        SingleLineErrors(login.metadata_url)
    )
    from authlib.deprecate import AuthlibDeprecationWarning  # noqa: PLC0415  only a login needs Authlib

    with warnings.catch_warnings():
        # It would rather have httpx2, and says so at its import; Streamlit asks for httpx.
        warnings.simplefilter("ignore", AuthlibDeprecationWarning)
        importlib.import_module("authlib.integrations.starlette_client")


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def content_policy() -> str:
    """What a browser may load for the page: nothing from anywhere else, and no script that is not Streamlit's file.

    Streamlit's index page holds small scripts of its own; they are allowed by their hashes.
    Its style is made in the browser, so inline style has to be allowed.
    """
    index = (Path(st.__file__).parent / "static" / "index.html").read_text()
    scripts = re.findall(r"<script>(.*?)</script>", index, re.DOTALL)
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
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


class _Guard:
    """Puts the policy on every answer."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)
