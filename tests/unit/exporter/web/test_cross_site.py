import pytest

from exporter.web.http import Request, Response, Route
from tests.unit.exporter.triage.served import Served
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
    with serving(host="0.0.0.0") as server:
        answer = exchange(server, method + b" " + path + b" HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Sec-Fetch-Site: cross-site", b"403 Forbidden"),
        (b"Sec-Fetch-Site: same-site", b"403 Forbidden"),
        (b"Origin: http://evil", b"403 Forbidden"),
        (b"Sec-Fetch-Site: none", b"200 OK"),
        (b"User-Agent: Prometheus", b"200 OK"),
    ],
)
def test_a_get_that_acts_is_refused_to_pages_of_other_sites(headers, status):
    """A link or a picture on a page of another site starts no probe."""
    routes = {"/probe": Route("acts", lambda _: Response(b"done"), acts=True)}
    with serving(routes, host="0.0.0.0") as server:
        answer = exchange(server, b"GET /probe HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("path", ["/probe", "/-/reload", "/api/v1/triage"])
def test_every_path_of_the_exporter_that_acts_is_refused_to_pages_of_other_sites(tmp_path, path):
    """By the marks of its route."""
    route = Served(tmp_path / "triage.json").routes[path]

    assert route.acts or "GET" not in route.methods or "POST" in route.methods
    assert route.acts == (path == "/probe")


def test_a_route_gets_the_body_of_its_request_only():
    """The next request on the connection has its own, or none."""
    routes = {"/say": Route("repeats", lambda request: Response(b"<%s>" % request.body), ("POST",))}
    head = b"POST /say HTTP/1.1\r\nHost: x\r\n"
    with serving(routes) as server:
        answers = exchange(server, head + b"Content-Length: 3\r\n\r\nabc" + head + b"\r\n")

    assert answers.index(b"<abc>") < answers.index(b"<>")
