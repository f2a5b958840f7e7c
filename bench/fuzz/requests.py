"""Raw requests to the real server over loopback: damaged bytes, parameters, headers and bodies."""

import shutil
import tempfile
from pathlib import Path
from random import Random
from urllib.parse import quote

import orjson

from bench.fuzz import recordings
from bench.fuzz.cases import FuzzCase, PromiseBroken
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import Mutator
from bench.fuzz.transport import MemoryNetwork, loopback
from bench.fuzz.whole_way import CLUSTER, CaseClock, ClusterReading, WholeWay
from exporter.api.columns import LISTS
from exporter.web.server import HttpServer

_INPUT = "request"
_SECONDS = 8.0
"""Longer than any answer takes, and shorter than the server waits for the rest of a request."""

_PATHS = (
    *(
        "/",
        "/metrics",
        "/-/healthy",
        "/-/ready",
        "/-/reload",
        "/probe",
        "/runbook",
        "/api/v1/findings",
        "/api/v1/triage",
    ),
    *("/api/v1/probes", "/api/v1/vitals", "/api/v1/series", "/api/v1/snapshot", "/api/v1/columns", "/api/v1/trends"),
    *(
        "/api/v1/queue",
        "/api/v1/bundle",
        "//",
        "/..%2f",
        "/metrics/",
        "*",
        "http://h/metrics",
        "/api/v1/nothing",
        "/%00",
    ),
)
_VALUES = {
    "cluster": (CLUSTER, "", "shop,shop", ",", "nobody"),
    "list": (*LISTS, "", "nothing"),
    "columns": ("name,vhost", "stats.ack", "lately.ack", "", ",,", "name," * 500),
    "families": ("queues", "queues,nodes", "", "all"),
    "kind": ("queue", "channel", "node", "cluster", "", "x"),
    "vhost": ("/", "", "shop"),
    "name": ("orders.quorum", "", "rabbit@one"),
    "queue": ("orders.quorum", "idle", ""),
    "objects": ('[["/","idle"]]', "[]", "{}", "[[1,2]]", '[["/"]]', "[null]", "[" * 2000, '["x"]', "1", "x", "NaN"),
    "lines": ("ready", "ready,ack", "", "x"),
    "rule": ("stuck-consumer", "../x", ""),
    "probe": ("rtt", "x"),
    "module": ("prod",),
    "target": (CLUSTER, "127.0.0.1:1", "http://u:p@h"),
    "debug": ("true", "x"),
}
_HEADERS = (
    *("Accept: application/openmetrics-text;q=1", "Accept: */*;q=x", "Accept: " + "a/b;q=0.1," * 400, "Accept:"),
    *("Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", "Accept-Encoding: ,,;;q==", "Connection: close"),
    *("Authorization: Basic", "Authorization: Basic %%%", "Authorization: \xff", "Origin: http://evil", "Origin: null"),
    *("Sec-Fetch-Site: cross-site", "Expect: 100-continue", "Expect: x", "Upgrade: websocket", "Connection: upgrade"),
    *(
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Content-Length: 5",
        "Content-Length: -1",
        "Cookie: \x00",
    ),
    *(
        "Range: bytes=0-",
        "If-None-Match: *",
        "X-Forwarded-For: x",
        "Host: evil",
        "Content-Type: text/plain",
        ": x",
        "x",
    ),
    *("X-Prometheus-Scrape-Timeout-Seconds: nan", "X-Prometheus-Scrape-Timeout-Seconds: -1", "TE: trailers", " folded"),
)
_METHODS = ("GET",) * 8 + ("HEAD", "POST", "POST", "PUT", "OPTIONS", "DELETE", "TRACE", "CONNECT", "get", "", "G\x00T")
_TRIAGE = {
    "cluster": CLUSTER,
    "rule": "stuck-consumer",
    "subject": {"kind": "queue", "name": "idle", "vhost": "/"},
    "by": "ann",
    "acknowledged": True,
    "owner": "bob",
    "mute_seconds": 60,
    "reason": "known",
}


class RawRequests:
    """The target: a server with the state of a recorded cluster."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ackscope-fuzz-"))
        clock = CaseClock()
        self._way = WholeWay(clock)
        network = MemoryNetwork()
        network.answers = recordings.answers("4.3.6")
        with network.connected():
            reading = ClusterReading(clock)
            snapshots = [reading.snapshot()]
            clock.seconds = 60.0
            snapshots.append(reading.snapshot())
            reading.close()
        routes = self._way.show(snapshots, 0)
        self._server = HttpServer(("127.0.0.1", 0), routes, allowed_hosts=("x",))
        self._server.start()

    def make(self, rng: Random) -> FuzzCase:
        """Make a request of odd parts, and damage its bytes in every third case."""
        mutator = Mutator(rng)
        content = b"".join(_request(rng, mutator) for _ in range(rng.choice((1, 1, 1, 2, 5))))
        return FuzzCase("4.3.6", {_INPUT: mutator.bytes(content) if rng.random() < 0.33 else content})

    def check(self, case: FuzzCase) -> None:
        """Each answer is whole and shows no traceback, and the next request is answered."""
        answered = loopback(self._server.url, case.inputs.get(_INPUT, b""), _SECONDS)
        if answered and not answered.startswith(b"HTTP/1.1 "):
            raise PromiseBroken(f"no HTTP answer: {answered[:100]!r}")
        if b"Traceback" in answered or b"HTTP/1.1 500" in answered:
            raise PromiseBroken(f"a defect shows: {answered[:300]!r}")
        alive = loopback(self._server.url, b"GET /-/healthy HTTP/1.0\r\nHost: x\r\n\r\n", _SECONDS)
        if not alive.startswith(b"HTTP/1.1 200 "):
            raise PromiseBroken(f"the next request is answered {alive[:100]!r}")

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()
        self._way.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _request(rng: Random, mutator: Mutator) -> bytes:
    names = rng.sample(list(_VALUES), rng.choice((0, 1, 2, 3, 4)))
    query = "&".join(f"{name}={_value(name, rng, mutator)}" for name in names)
    path = rng.choice(_PATHS) if rng.random() < 0.95 else quote(mutator.text("/metrics"), safe="/")
    version = "HTTP/1.1" if rng.random() < 0.9 else rng.choice(("HTTP/1.0", "HTTP/2.0", "HTTP/1.x", "", "HTTP/1.1 x"))
    headers = rng.choices(_HEADERS, k=rng.choice((0, 0, 1, 2, 6)))
    method, body = rng.choice(_METHODS), b""
    if method == "POST" and rng.random() < 0.7:
        path = "/api/v1/triage" if rng.random() < 0.8 else path
        body = mutator.document(orjson.loads(orjson.dumps(_TRIAGE)))
        headers.append(f"Content-Length: {len(body)}")
    host = ["Host: x"] if rng.random() < 0.95 else []
    line = f"{method} {path}{'?' if query else ''}{query} {version}"
    return "\r\n".join((line, *host, *headers, "", "")).encode("latin-1", "replace") + body


def _value(name: str, rng: Random, mutator: Mutator) -> str:
    value = rng.choice(_VALUES[name])
    if rng.random() < 0.15:
        value = mutator.text(value)
    return value if rng.random() < 0.05 and value.isascii() else quote(value, safe="", errors="replace")


TARGET = RawRequests
BENCH = fuzz_bench(
    "requests", "raw requests to the server of an exporter, over loopback", what="requests", inputs=100_000
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
