import asyncio
import socket

from dashboard.server import send_without_delay


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
