"""Invalid answers of brokers, proxies and other servers: each is reported and survived."""

import gzip
import threading

import pytest

from ackscope.clock import SystemClock
from ackscope.errors import BadAnswer, Refused, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from tests.unit.exporter.broker.server import broker, json, reply, serve

PATH = "/api/overview"
TIMEOUT = 0.4
LATE = f"no full answer within {TIMEOUT:g} s; the node hangs, or is slow: raise timeout"
BROKE_OFF = "truncated answer; the node or a proxy closed the connection, try again"
CUT = "not JSON ({n} bytes), truncated or not the management API; try again"


def raw(*pieces, hold=None):
    """A route that writes these bytes, then closes or keeps the connection open until it is released."""

    def route(request):
        for piece in pieces:
            request.wfile.write(piece)
        request.wfile.flush()
        if hold is not None:
            hold.wait(30)
        request.close_connection = True

    return route


def forever(head, piece, release):
    """A route that sends chunks forever."""

    def route(request):
        request.wfile.write(head)
        while not release.wait(0.01):
            request.wfile.write(piece)

    return route


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = gzip.compress(b'{"a": "' + b"0" * (8 * 2**20) + b'"}')

ANSWERS = {
    # name: (route, kind of error, text)
    "truncated": (raw(OK + b"Content-Length: 99\r\n\r\n", b'{"a":'), BadAnswer, BROKE_OFF),
    "length-too-small": (raw(OK + b"Content-Length: 4\r\n\r\n", b'{"a": 1}'), BadAnswer, CUT.format(n=4)),
    "empty": (reply(b""), BadAnswer, CUT.format(n=0)),
    "no-body": (reply(b"", 204), BadAnswer, "204; expected 200"),
    "half-a-chunk": (raw(CHUNKED, b"20\r\n{"), BadAnswer, BROKE_OFF),
    "no-last-chunk": (raw(CHUNKED, b'8\r\n{"a": 1}\r\n'), BadAnswer, BROKE_OFF),
    "a-chunk-of-no-size": (raw(CHUNKED, b"zz\r\n{}\r\n0\r\n\r\n"), BadAnswer, BROKE_OFF),
    "html": (
        reply(b"<html>", 200, "text/html"),
        BadAnswer,
        "a web page instead of JSON; is this the management API, or a proxy's login page?",
    ),
    "binary": (reply(b"\x83l\x00\x00", 200, "application/bert"), BadAnswer, CUT.format(n=4)),
    "deep": (reply(b"[" * 100_000), BadAnswer, CUT.format(n=100_000)),
    "packed-and-not": (
        raw(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n", b"none"),
        BadAnswer,
        "the answer cannot be decompressed; check the proxy in between",
    ),
    "gzip-bomb": (
        raw(OK + f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n\r\n".encode(), BOMB),
        BadAnswer,
        "the answer is larger than 1 MiB; stopped reading",
    ),
    "huge": (reply(b" " * (2**20 + 1)), BadAnswer, "the answer is larger than 1 MiB; stopped reading"),
    "refused": (
        json({"error": "not_authorized", "reason": "Login failed"}, 401),
        Refused,
        "401 wrong user or password (user 'guest'); check username and password",
    ),
    "forbidden": (
        reply(b"", 403),
        Refused,
        "403 access refused to user 'guest'; give it the tag `monitoring`, or check what a proxy in between allows",
    ),
    "not-found": (
        reply(b"not here", 404, "text/plain"),
        BadAnswer,
        (
            "404, no management API here; check that the plugin is enabled "
            "(`rabbitmq-plugins enable rabbitmq_management`) and that the path prefix of the address is right"
        ),
    ),
    "crash": (
        reply(b"<h1>500", 500, "text/html"),
        BadAnswer,
        "500 from the server; see the broker's log at this time",
    ),
    "gateway": (reply(b"", 502), BadAnswer, "502 from the server; see the broker's log at this time"),
    "unavailable": (
        reply(b"", 503),
        Unreachable,
        "503 not available; the node or a proxy is not ready, try later",
    ),
    "redirect": (
        reply(b"", 301, Location="https://u:s3cret@mq/"),
        BadAnswer,
        "301 redirects to https://u:***@mq/; use that address, redirects are not followed",
    ),
    "redirect-to-nowhere": (
        reply(b"", 302),
        BadAnswer,
        "302 redirects to nowhere; use that address, redirects are not followed",
    ),
    "nothing": (
        raw(),
        Unreachable,
        "connection closed without an answer; a TLS port (https://), or a node shutting down?",
    ),
    "not-http": (
        raw(b"220 mail.example ESMTP\r\n"),
        BadAnswer,
        "not HTTP; is this an AMQP port (management: 15672), or a TLS port (https://)?",
    ),
}

ENDLESS = {
    "slow": (OK + b"Content-Length: 100000\r\n\r\n", b"1"),
    "slow-in-headers": (OK + b"X-Slow: ", b"1"),
    "endless-headers": (OK, b"X-More: 1\r\n"),
    "never-ending": (OK + b"\r\n", b"1"),
    "endless-chunks": (CHUNKED, b"1\r\n1\r\n"),
    "endless-interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.fixture
def release():
    """Set at the end, so that endless routes stop."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def small(monkeypatch):
    """Limits answers to 1 MiB."""
    monkeypatch.setattr("exporter.broker.client.MAX_BYTES", 2**20)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("route", "kind", "text"), ANSWERS.values(), ids=ANSWERS.keys())
def test_a_bad_answer_is_one_clear_line_and_the_next_one_is_read(route, kind, text):
    """It says where, what and what to do, never with a credential; the client stays usable."""
    with serve({PATH: route}) as server:
        client = ManagementClient(ManagementSettings(url=server.url, timeout=5.0))
        with pytest.raises((Unreachable, Refused, BadAnswer)) as caught:
            client.get(PATH)
        server.routes[PATH] = json({"good": True})
        after = client.get(PATH)
        client.close()

    assert (kind, f"{server.where}{PATH}: {text}") == (type(caught.value), str(caught.value))
    assert {"good": True} == after
    assert client.requests == 2
    assert client.seconds > 0


@pytest.mark.parametrize(("head", "piece"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_endless_answer_ends_with_the_timeout(release, head, piece):
    """Single bytes do not extend it."""
    with serve({PATH: forever(head, piece, release)}) as server:
        client = ManagementClient(ManagementSettings(url=server.url, timeout=TIMEOUT))
        with pytest.raises((Unreachable, BadAnswer)) as caught:
            client.get(PATH)
        seconds = client.seconds
        release.set()
        server.routes[PATH] = json({"good": True})
        after = client.get(PATH)
        client.close()

    assert str(caught.value).startswith(f"{server.where}{PATH}: ")
    assert (type(caught.value), str(caught.value)) in {
        (Unreachable, f"{server.where}{PATH}: {LATE}"),
        # The header limit of the library is reached before the timeout.
        (BadAnswer, (f"{server.where}{PATH}: not HTTP; is this an AMQP port (management: 15672), or a TLS port "
            "(https://)?")),
    }  # fmt: skip
    assert seconds < 10 * TIMEOUT
    assert {"good": True} == after


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["truncated", "html", "crash", "gzip-bomb", "nothing", "forbidden"])
def test_one_bad_endpoint_is_one_part_without_a_value(name):
    """All other families are read; nothing looks like zero queues."""
    route, _, text = ANSWERS[name]
    routes = {**broker("4.3.6"), "/api/queues": route}
    with serve(routes) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)

    assert ["queues"] == [family for family, part in snapshot.parts.items() if part.error]
    assert snapshot.queues.value is None
    assert snapshot.queues.error == f"{server.where}/api/queues: {text}"
