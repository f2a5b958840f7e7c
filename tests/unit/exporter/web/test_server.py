import gzip
import logging
import socket

import pytest
import requests

from ackscope.errors import UsageError
from exporter.web.http import JSON, Response, Route
from exporter.web.server import HttpServer
from tests.unit.exporter.web.raw import LONG, ROUTES, answered, connect, exchange, serving


def get(url, method="GET", **headers):
    """One request without the default headers of the library."""
    return requests.request(method, url, headers={"Accept-Encoding": "identity", **headers}, timeout=10)


def test_answers_what_the_table_says():
    """The query is no part of the path; headers keep browsers from guessing and framing."""
    with serving() as server:
        answer = get(f"{server.url}/short?x=1")

    assert (200, b"{}", JSON) == (answer.status_code, answer.content, answer.headers["Content-Type"])
    assert "nosniff" == answer.headers["X-Content-Type-Options"]
    assert "DENY" == answer.headers["X-Frame-Options"]
    assert "no-store" == answer.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("?a=1&b=x%20y&a=2&c=", [("a", "2"), ("b", "x y"), ("c", "")]),
        ("?" + "&".join(f"p{index}=1" for index in range(21)), []),
    ],
)
def test_a_path_learns_its_parameters_and_headers(query, expected):
    """Decoded, the last of a name; a query with more of them than anybody needs is none."""
    with serving() as server:
        answer = get(f"{server.url}/asked{query}", **{"X-More": "reported"})

    assert f"GET {expected} reported" == answer.text


def test_an_unknown_path_is_answered_with_the_known_ones():
    """404, and what there is instead."""
    with serving() as server:
        answer = get(f"{server.url}/metric")

    assert 404 == answer.status_code
    assert "page /metric not found; available:\n/\n/short\n/long\n/huge\n/broken\n/asked\n/do\n" == answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_only_what_a_route_allows_is_answered(method):
    """Whatever the word, it is 405 with what is allowed; the connection goes on, the body is no request."""
    with serving() as server, requests.Session() as session:
        answer = session.request(method, f"{server.url}/short", data=b"GET /broken HTTP/1.1", timeout=10)
        second = session.get(f"{server.url}/short", timeout=10)

    assert (405, "GET, HEAD", "only GET and HEAD\n") == (answer.status_code, answer.headers["Allow"], answer.text)
    assert 200 == second.status_code


@pytest.mark.parametrize(("method", "status"), [("POST", 200), ("GET", 405), ("HEAD", 405)])
def test_a_route_can_be_for_another_method(method, status):
    """It says so itself, and a request tells by which it came."""
    with serving() as server:
        answer = get(f"{server.url}/do", method, **{"X-More": "reported"})

    assert status == answer.status_code
    assert ("POST [] reported" if status == 200 else "POST") == (
        answer.text if status == 200 else answer.headers["Allow"]
    )


def test_head_is_get_without_its_body():
    """The same headers, the length included."""
    with serving() as server:
        answer = get(f"{server.url}/long", "HEAD")

    assert (200, b"", str(len(LONG))) == (answer.status_code, answer.content, answer.headers["Content-Length"])


def test_long_answers_are_compressed_for_those_who_take_it():
    """Other clients get plain answers; short answers are never compressed."""
    with serving() as server:
        packed = requests.get(f"{server.url}/long", headers={"Accept-Encoding": "gzip"}, stream=True, timeout=10)
        raw = packed.raw.read(decode_content=False)
        plain, short = get(f"{server.url}/long"), requests.get(f"{server.url}/short", timeout=10)

    assert "gzip" == packed.headers["Content-Encoding"]
    assert LONG == gzip.decompress(raw)
    assert len(raw) < len(LONG) / 10
    assert (LONG, None) == (plain.content, plain.headers.get("Content-Encoding"))
    assert "Accept-Encoding" == plain.headers["Vary"]
    assert "Content-Encoding" not in short.headers


def test_a_defect_in_one_answer_ends_nothing(caplog):
    """500 without details, the traceback in the log, and the next request is answered."""
    with serving() as server, caplog.at_level(logging.ERROR):
        broken, good = get(f"{server.url}/broken"), get(f"{server.url}/short")

    assert (500, "internal error; see the log of the exporter\n", 200) == (
        broken.status_code,
        broken.text,
        good.status_code,
    )
    assert "ZeroDivisionError" in caplog.text


def test_the_first_page_lists_the_others():
    """With links and what they are for."""
    with serving() as server:
        answer = get(server.url)

    assert "text/html; charset=utf-8" == answer.headers["Content-Type"]
    assert '<li><a href="/short">/short</a> a few bytes</li>' in answer.text


def test_a_client_that_goes_away_is_no_error(caplog):
    """Nothing in the log from warning up, and the server answers on."""
    with serving() as server, caplog.at_level(logging.WARNING):
        with connect(server) as rude:
            rude.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n")
        answer = get(f"{server.url}/short")

    assert 200 == answer.status_code
    assert "" == caplog.text


def test_a_port_in_use_is_reported_in_one_line():
    """What, where, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as raised:
            HttpServer(("127.0.0.1", port), ROUTES)

    expected = f"listen: 127.0.0.1:{port} is already in use; choose another port in `listen`, or stop the other process"

    assert expected == str(raised.value)


def test_an_address_of_another_machine_is_reported_in_one_line():
    """A documentation address is not ours to listen on."""
    with pytest.raises(UsageError) as raised:
        HttpServer(("192.0.2.1", 0), ROUTES)

    assert (
        "listen: 192.0.2.1:0 cannot be used (cannot assign requested address); choose another address in `listen`"
    ) == str(raised.value)


def test_listens_on_version_six():
    """An address in brackets."""
    server = HttpServer(("::1", 0), ROUTES)
    server.start()
    try:
        assert 200 == get(f"{server.url}/short").status_code
        assert server.url.startswith("http://[::1]:")
    finally:
        server.stop()


def test_pieces_are_sent_as_one_answer():
    """Small ones and large ones in their order, coded as the route has coded them."""
    pieces = (b"a" * 10, b"", b"b" * 300_000, b"c" * 10, b"d" * 300_000)
    routes = {"/": Route("pieces", lambda _: Response(b"first", chunks=pieces, content_encoding="identity"))}
    with serving(routes) as server:
        answer = requests.get(server.url, timeout=10)

    assert b"first" + b"".join(pieces) == answer.content
    assert "Content-Encoding" not in answer.headers


def test_headers_that_are_given_twice_are_one_list():
    """As HTTP has it."""
    with serving() as server:
        answer = exchange(server, b"GET /asked HTTP/1.0\r\nX-More: a\r\nX-MORE: b\r\n\r\n")

    assert answer.endswith(b"GET [] a, b")


def test_several_requests_on_one_connection():
    """Sent at once, they are answered in their order; a client of HTTP/1.0 gets one answer."""
    one = b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving() as server:
        three, old = exchange(server, one * 3), exchange(server, b"GET /short HTTP/1.0\r\n\r\n" * 3)

    assert (3, 1) == (three.count(b"HTTP/1.1 200 OK"), old.count(b"HTTP/1.1 200 OK"))
    assert b"connection: close\r\n" in old.lower()


def test_a_server_that_stops_ends_its_connections():
    """Clients with idle connections see the close."""
    with serving() as server:
        client = connect(server)
        client.sendall(b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"{}" == answered(client)
    with client:
        assert b"" == client.recv(1)
