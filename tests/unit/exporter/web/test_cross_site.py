import pytest

from exporter.web.http import Request, Response, Route
from tests.unit.exporter.web.raw import exchange, serving


@pytest.mark.parametrize(
    ("headers", "cross_site"),
    [
        ({}, False),
        ({"host": "a:1", "origin": "http://a:1"}, False),
        ({"host": "a:1", "origin": "https://a:1"}, False),
        ({"host": "a:1", "origin": "http://a:1", "sec-fetch-site": "same-origin"}, False),
        ({"host": "a:1", "sec-fetch-site": "none"}, False),
        ({"host": "a:1", "origin": "http://a:2"}, True),
        ({"host": "a:1", "origin": "http://evil"}, True),
        ({"host": "a:1", "origin": "http://[evil"}, True),
        ({"host": "a:1", "origin": "null"}, True),
        ({"host": "a:1", "sec-fetch-site": "cross-site"}, True),
        ({"host": "a:1", "sec-fetch-site": "same-site"}, True),
    ],
)
def test_requests_that_pages_of_other_sites_send_are_recognized(headers, cross_site):
    """Clients that are no browsers send none of these headers."""
    assert cross_site == Request({}, headers).is_cross_site


@pytest.mark.parametrize(
    ("method", "path", "origin", "status"),
    [
        (b"POST", b"/do", b"http://evil", b"403 Forbidden"),
        (b"POST", b"/do", b"http://x", b"200 OK"),
        (b"GET", b"/short", b"http://evil", b"200 OK"),
    ],
)
def test_pages_of_other_sites_may_only_read(method, path, origin, status):
    """Every route that changes something refuses them."""
    with serving() as server:
        answer = exchange(server, method + b" " + path + b" HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_route_gets_the_body_of_its_request_only():
    """The next request on the connection has its own, or none."""
    routes = {"/say": Route("repeats", lambda request: Response(b"<%s>" % request.body), ("POST",))}
    head = b"POST /say HTTP/1.1\r\nHost: x\r\n"
    with serving(routes) as server:
        answers = exchange(server, head + b"Content-Length: 3\r\n\r\nabc" + head + b"\r\n")

    assert answers.index(b"<abc>") < answers.index(b"<>")
