import asyncio
import socket
import threading

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard.server import EarlyRead, send_without_delay


def test_responses_are_sent_without_delay() -> None:
    """The socket that Streamlit binds names no protocol; so asyncio alone would let each file of a page wait 40 ms."""
    options: list[bool] = []

    async def accept_one() -> None:
        loop = asyncio.get_running_loop()
        send_without_delay(loop)
        listener = socket.socket(family=socket.AF_INET)
        listener.bind(("127.0.0.1", 0))
        accepted: asyncio.Future[bool] = loop.create_future()

        class Accepting(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                ours = transport.get_extra_info("socket")
                accepted.set_result(bool(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
                transport.close()

        async with await loop.create_server(Accepting, sock=listener):
            with socket.create_connection(listener.getsockname(), timeout=5):
                options.append(await asyncio.wait_for(accepted, 5))

    asyncio.run(accept_one())

    assert [True] == options


@pytest.mark.parametrize(
    ("response", "reads"),
    [
        pytest.param(HTMLResponse("<title>Now</title>"), True, id="page"),
        pytest.param(HTMLResponse("gone", 404), False, id="missing page"),
        pytest.param(JSONResponse({}), False, id="other file"),
        pytest.param(Response(), False, id="without a type"),
    ],
)
def test_the_exporter_is_read_while_the_browser_loads_the_page(response: Response, *, reads: bool) -> None:
    """Only a page that is there starts it: each is about 140 files."""
    read = threading.Event()

    async def answer(_: Request) -> Response:
        return response

    with TestClient(EarlyRead(Starlette(routes=[Route("/", answer)]), read.set)) as client:
        assert client.get("/").status_code == response.status_code

    assert read.wait(5 if reads else 0.2) is reads


def test_a_page_is_served_while_the_exporter_does_not_answer() -> None:
    """Readings do not queue up: while one waits, no other begins."""
    answered, reads = threading.Event(), []

    def read() -> None:
        reads.append(1)
        answered.wait()

    async def page(_: Request) -> Response:
        return HTMLResponse("<title>Now</title>")

    with TestClient(EarlyRead(Starlette(routes=[Route("/", page)]), read)) as client:
        assert [client.get("/").status_code for _ in range(3)] == [200, 200, 200]
        answered.set()

    assert reads == [1]
