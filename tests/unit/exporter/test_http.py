import gzip
import logging
import socket
from contextlib import contextmanager

import pytest
import requests

from ackscope.errors import UsageError
from exporter.http import JSON, Answer, Route, Server, accepts_gzip

LONG = b"ackscope " * 1000


def fail(_request):
    """A route with a defect."""
    raise ZeroDivisionError


def asked(request):
    """A route that tells its request."""
    return Answer(f"{sorted(request.query.items())} {request.headers.get('x-more')}".encode())


ROUTES = {
    "/short": Route("a few bytes", lambda _: Answer(b"{}", JSON)),
    "/long": Route("many bytes", lambda _: Answer(LONG)),
    "/broken": Route("a defect", fail),
    "/asked": Route("what was asked", asked),
}


@contextmanager
def serving(routes=None):
    """A server on a free port; yields its address."""
    server = Server(("127.0.0.1", 0), ROUTES if routes is None else routes)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def get(url, method="GET", **headers):
    """One request without the default headers of the library."""
    return requests.request(method, url, headers={"Accept-Encoding": "identity", **headers}, timeout=10)


def test_answers_what_the_table_says():
    """The query is no part of the path; headers keep browsers from guessing and framing."""
    with serving() as url:
        answer = get(f"{url}/short?x=1")

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
    with serving() as url:
        answer = get(f"{url}/asked{query}", **{"X-More": "told"})

    assert f"{expected} told" == answer.text


def test_an_unknown_path_is_answered_with_the_known_ones():
    """404, and what there is instead."""
    with serving() as url:
        answer = get(f"{url}/metric")

    assert 404 == answer.status_code
    assert "no page /metric; there are:\n/\n/short\n/long\n/broken\n/asked\n" == answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_only_reading_is_allowed(method):
    """Whatever the word, it is 405 with what is allowed."""
    with serving() as url:
        answer = get(f"{url}/short", method, Connection="close")

    assert (405, "GET, HEAD") == (answer.status_code, answer.headers["Allow"])


def test_head_is_get_without_its_body():
    """The same headers, the length included."""
    with serving() as url:
        answer = get(f"{url}/long", "HEAD")

    assert (200, b"", str(len(LONG))) == (answer.status_code, answer.content, answer.headers["Content-Length"])


def test_long_answers_are_compressed_for_those_who_take_it():
    """And for nobody else; short ones never."""
    with serving() as url:
        packed = requests.get(f"{url}/long", headers={"Accept-Encoding": "gzip"}, stream=True, timeout=10)
        raw = packed.raw.read(decode_content=False)
        plain, short = get(f"{url}/long"), requests.get(f"{url}/short", timeout=10)

    assert "gzip" == packed.headers["Content-Encoding"]
    assert LONG == gzip.decompress(raw)
    assert len(raw) < len(LONG) / 10
    assert (LONG, None) == (plain.content, plain.headers.get("Content-Encoding"))
    assert "Accept-Encoding" == plain.headers["Vary"]
    assert "Content-Encoding" not in short.headers


@pytest.mark.parametrize(
    ("header", "expected"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("identity", False), ("", False)],
)
def test_who_takes_gzip(header, expected):
    """As the Accept-Encoding header has it."""
    assert expected == accepts_gzip(header)


def test_a_defect_in_one_answer_ends_nothing(caplog):
    """500 without details, the traceback in the log, and the next request is answered."""
    with serving() as url, caplog.at_level(logging.ERROR):
        broken, good = get(f"{url}/broken"), get(f"{url}/short")

    assert (500, "this page failed; the log tells why\n", 200) == (broken.status_code, broken.text, good.status_code)
    assert "ZeroDivisionError" in caplog.text


def test_the_first_page_lists_the_others():
    """With links and what they are for."""
    with serving() as url:
        answer = get(url)

    assert "text/html; charset=utf-8" == answer.headers["Content-Type"]
    assert '<li><a href="/short">/short</a> a few bytes</li>' in answer.text


def test_a_client_that_goes_away_is_no_error(caplog):
    """Nothing in the log from warning up, and the server answers on."""
    with serving() as url, caplog.at_level(logging.WARNING):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as rude:
            rude.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n")
        answer = get(f"{url}/short")

    assert 200 == answer.status_code
    assert "" == caplog.text


def test_a_port_in_use_is_told_in_one_line():
    """What, where, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as raised:
            Server(("127.0.0.1", port), ROUTES)

    expected = (
        f"listen: 127.0.0.1:{port} is already in use; choose another port in `listen`, or stop what listens there"
    )

    assert expected == str(raised.value)


def test_an_address_of_another_machine_is_told_in_one_line():
    """A documentation address is not ours to listen on."""
    with pytest.raises(UsageError) as raised:
        Server(("192.0.2.1", 0), ROUTES)

    assert (
        "listen: 192.0.2.1:0 cannot be listened on (cannot assign requested address); "
        "choose another address in `listen`"
    ) == str(raised.value)


def test_listens_on_version_six():
    """An address in brackets."""
    server = Server(("::1", 0), ROUTES)
    server.start()
    try:
        assert 200 == get(f"{server.url}/short").status_code
        assert server.url.startswith("http://[::1]:")
    finally:
        server.stop()
