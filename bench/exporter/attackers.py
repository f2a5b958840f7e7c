"""`python -m bench.exporter.attackers URL COUNT`: clients that try to keep scrapes out, until stdin closes.

A third asks for bundles, a third pipelines requests for pages and does not read, and a third tries passwords. Each
goes on as soon as it is answered or closed. At the end the number of requests of each kind is printed as JSON.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import logging
import sys
import threading
from collections import Counter
from urllib.parse import urlsplit

_LOGIN = base64.b64encode(b"ann:secret").decode()
_PIPELINED = 50
_PAUSE = 0.01


def _request(path: str, login: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: Basic {login}", "", "")
    return "\r\n".join(lines).encode()


async def _answer(reader: asyncio.StreamReader) -> None:
    """Read one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.partition(b":")[2]))


async def _attack(kind: int, address: tuple[str, int], done: Counter[str]) -> None:
    """Attack over one connection, until the server closes it."""
    reader, writer = await asyncio.open_connection(*address, limit=1 << 16)
    guesses = itertools.count()
    try:
        if kind == 1:
            writer.write(_request("/metrics", _LOGIN) * _PIPELINED)
            done["pipelined without reading"] += 1
            await writer.drain()
            await writer.wait_closed()
        while kind != 1:
            guess = base64.b64encode(b"ann:guess %d" % next(guesses)).decode()
            path, login = ("/api/v1/bundle", _LOGIN) if kind == 0 else ("/metrics", guess)
            writer.write(_request(path, login))
            await _answer(reader)
            done["bundles" if kind == 0 else "passwords"] += 1
    finally:
        writer.close()


async def _client(kind: int, address: tuple[str, int], done: Counter[str]) -> None:
    while True:
        with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
            await _attack(kind, address, done)
        await asyncio.sleep(_PAUSE)


async def _run(url: str, count: int) -> Counter[str]:
    parts, done, end = urlsplit(url), Counter[str](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(end.set)

    threading.Thread(target=wait, daemon=True).start()
    address = (str(parts.hostname), int(parts.port or 0))
    clients = [asyncio.create_task(_client(number % 3, address, done)) for number in range(count)]
    await end.wait()
    for client in clients:
        client.cancel()
    return done


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    print(json.dumps(asyncio.run(_run(sys.argv[1], int(sys.argv[2])))))
