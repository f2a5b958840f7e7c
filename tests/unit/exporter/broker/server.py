"""A real HTTP server on a free loopback port with routes that a test defines."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from exporter.broker.endpoints.health import CERTIFICATES, CHECKS
from exporter.broker.families import FAMILIES, FetchMode

FIXTURES = Path(__file__).parents[3] / "fixtures"
VERSIONS = tuple(sorted(folder.name for folder in FIXTURES.iterdir() if (folder / "overview.json").exists()))

Route = Callable[[BaseHTTPRequestHandler], None]


SHAPES = ("", *sorted({folder.name for folder in FIXTURES.glob("*/*/") if (folder / "overview.json").exists()}))
"""States of a broker that are recorded; "" is the sample workload."""


def fixture(version: str, family: str, shape: str = "") -> Any:
    """A recorded payload."""
    return orjson.loads((FIXTURES / version / shape / f"{family}.json").read_bytes())


def recorded(version: str, shape: str = "") -> tuple[str, ...]:
    """The families that a broker of this shape answered."""
    return tuple(family for family in FAMILIES if (FIXTURES / version / shape / f"{family}.json").exists())


def reply(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Route:
    """A route with a fixed answer."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Type", content_type)
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def json(payload: Any, status: int = 200) -> Route:
    """A route that answers JSON."""
    return reply(orjson.dumps(payload), status)


class Server:
    """Address, routes and received requests.

    Attributes:
        routes: path -> route; may be changed at any time. Other paths get the 404 of RabbitMQ.
        seen: every path with its query, in order of arrival.
        most: path -> maximum number of concurrent requests.
        connections: number of accepted connections.
    """

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self.routes = dict(routes)
        self.seen: list[str] = []
        self.most: dict[str, int] = {}
        self.connections = 0
        self._in_flight: dict[str, int] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer._answer(self)

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def process_request(self, *args: Any) -> None:
                outer.connections += 1
                super().process_request(*args)

            def handle_error(self, *args: Any) -> None:
                pass  # clients under test disconnect mid-answer

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self.where = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://guest:s3cret@{self.where}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        with self._lock:
            self.seen.append(request.path)
            self._in_flight[path] = self._in_flight.get(path, 0) + 1
            self.most[path] = max(self.most.get(path, 0), self._in_flight[path])
        try:
            self.routes.get(path, json({"error": "Object Not Found", "reason": "Not Found"}, 404))(request)
        finally:
            with self._lock:
                self._in_flight[path] -= 1


@contextmanager
def serve(routes: Mapping[str, Route]) -> Iterator[Server]:
    """Run a server while the block runs."""
    server = Server(routes)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server._http.shutdown()
        server._http.server_close()
        thread.join()


def broker(version: str, shape: str = "") -> dict[str, Route]:
    """Routes that answer like the recorded broker of this version."""
    routes: dict[str, Route] = {}
    for family in recorded(version, shape):
        payload, (paths, how, *_) = fixture(version, family, shape), FAMILIES[family]
        match how:
            case FetchMode.SINGLE:
                routes[paths[0]] = json(payload)
            case FetchMode.PAGED:
                routes[paths[0]] = json({"page": 1, "page_count": 1, "items": payload})
            case FetchMode.MULTIPLE:
                routes.update({path: json(answer) for path, answer in payload.items()})
            case FetchMode.PER_NODE:
                for node, answer in payload.items():
                    routes[paths[0].replace("{node}", quote(node, safe=""))] = json(answer)
            case FetchMode.HEALTH_CHECKS:
                known = {check.name: check.path for check in (*CHECKS, CERTIFICATES)}
                for check, answer in payload.items():
                    routes[f"{paths[0]}/{known[check]}"] = json(answer["body"], answer["status"])
    return routes
