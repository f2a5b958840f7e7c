"""`python -m bench.dashboard.empty PORT`: a page with only a heading, served with the same options."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server import CONFIG, content_policy, send_without_delay

PAGE = Path(__file__).with_name("empty_page.py")


class _ContentPolicy:
    """Adds the dashboard's content policy to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._header = (b"content-security-policy", content_policy().encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], self._header]}
            await send(message)

        await self._app(scope, receive, send_with_policy if scope["type"] == "http" else send)


@asynccontextmanager
async def _lifespan(_: st.App) -> AsyncIterator[None]:
    send_without_delay(asyncio.get_running_loop())
    yield


def main(port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    sys.argv = [str(PAGE)]
    app = st.App(PAGE, lifespan=_lifespan, middleware=[Middleware(_ContentPolicy)])
    app.run(config={**CONFIG, "server.address": "127.0.0.1", "server.port": port})


if __name__ == "__main__":
    main(int(sys.argv[1]))
