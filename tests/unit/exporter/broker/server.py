"""A real HTTP server on a free loopback port that answers as a test wants."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

FIXTURES = Path(__file__).parents[3] / "fixtures"
VERSIONS = tuple(sorted(folder.name for folder in FIXTURES.iterdir() if (folder / "overview.json").exists()))

Route = Callable[[BaseHTTPRequestHandler], None]


def fixture(version: str, family: str) -> Any:
    """A recorded payload."""
    return orjson.loads((FIXTURES / version / f"{family}.json").read_bytes())


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
    """Where it listens, what it answers, and what it was asked.

    Attributes:
        routes: path -> what answers; may be changed at any time. Other paths are 404, as RabbitMQ answers them.
        seen: every path with its query, in order of arrival.
        most: path -> the most requests that were under way at the same time.
    """

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self.routes = dict(routes)
        self.seen: list[str] = []
        self.most: dict[str, int] = {}
        self._under_way: dict[str, int] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer._answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *args: Any) -> None:
                pass  # clients under test give up in the middle

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self.where = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://guest:s3cret@{self.where}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        with self._lock:
            self.seen.append(request.path)
            self._under_way[path] = self._under_way.get(path, 0) + 1
            self.most[path] = max(self.most.get(path, 0), self._under_way[path])
        try:
            self.routes.get(path, json({"error": "Object Not Found", "reason": "Not Found"}, 404))(request)
        finally:
            with self._lock:
                self._under_way[path] -= 1


@contextmanager
def serve(routes: Mapping[str, Route]) -> Iterator[Server]:
    """Run a server for as long as the block runs."""
    server = Server(routes)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server._http.shutdown()
        server._http.server_close()
        thread.join()


def broker(version: str) -> dict[str, Route]:
    """Routes that answer as the recorded broker of this version did."""
    routes = {
        f"/api/{family}": json(fixture(version, family)) for family in ("overview", "nodes", "channels", "consumers")
    }
    routes["/api/connections"] = json(fixture(version, "connections"))
    routes["/api/queues"] = json({"page": 1, "page_count": 1, "items": fixture(version, "queues")})
    for check, answer in fixture(version, "health").items():
        path = {
            "certificate-expiration": "certificate-expiration/1/months",
            "metadata-store-initialized": "metadata-store/initialized",
            "quorum-queues-without-elected-leaders": "quorum-queues-without-elected-leaders/all-vhosts",
        }.get(check, check)
        routes[f"/api/health/checks/{path}"] = json(answer["body"], answer["status"])
    return routes
