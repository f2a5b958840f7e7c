import socket
import ssl
import threading

import pytest
import urllib3

from ackscope.errors import BadAnswer, ConfigError, Refused, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.http_errors import NoStatistics
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, reply, serve
from tests.unit.exporter.web.certificates import make

PATH = "/api/overview"


def client_of(server, **settings):
    """A client of a test server."""
    return ManagementClient(ManagementSettings(url=server.url, **settings))


def error_of(route, **settings):
    """The error of one GET of a route, with host and port replaced by HOST."""
    with serve({PATH: route}) as server:
        client = client_of(server, **settings)
        with pytest.raises((Unreachable, Refused, BadAnswer)) as caught:
            client.get(PATH)
        client.close()
        return type(caught.value), str(caught.value).replace(server.where, "HOST")


def test_an_answer_is_decoded_and_counted():
    """GET returns the JSON, and its bytes are counted."""
    with serve({PATH: json({"a": [1, None]})}) as server:
        client = client_of(server)
        answer = client.get(PATH, {"page": 1})
        client.close()

    assert ({"a": [1, None]}, 14, ["/api/overview?page=1"]) == (answer, client.received, server.seen)


def test_the_password_is_sent_in_utf8():
    """User and password are sent as basic authentication, including non-ASCII letters."""
    seen = []

    def route(request):
        seen.append(request.headers["Authorization"])
        json({})(request)

    with serve({PATH: route}) as server:
        client = client_of(server, username="jörg", password="ключ")
        client.get(PATH)
        client.close()

    assert seen == ["Basic asO2cmc60LrQu9GO0Yc="]


def test_one_connection_serves_many_requests():
    """The connection is reused."""
    ports = set()

    def route(request):
        ports.add(request.client_address[1])
        json({})(request)

    with serve({PATH: route}) as server:
        client = client_of(server)
        for _ in range(3):
            client.get(PATH)
        client.close()

    assert len(ports) == 1


def test_a_pooled_connection_that_was_closed_is_reopened():
    """A server that closes after every answer without announcing it gets a second request on a new connection."""

    def route(request):
        json({})(request)
        request.close_connection = True

    with serve({PATH: route}) as server:
        client = client_of(server)
        for _ in range(5):
            client.get(PATH)
        client.close()

    assert len(server.seen) == 5


@pytest.mark.parametrize(
    ("route", "kind", "text"),
    [
        pytest.param(
            json({"error": "not_authorized", "reason": "Login failed"}, 401),
            Refused,
            "HOST/api/overview: 401 wrong user or password (user 'guest'); check username and password",
            id="wrong-password",
        ),
        pytest.param(
            json({"error": "not_authorised", "reason": "Not management user"}, 401),
            Refused,
            "HOST/api/overview: 401 user 'guest' may not use the management API; "
            "give it the tag: rabbitmqctl set_user_tags guest monitoring",
            id="no-tag",
        ),
        pytest.param(
            json({"error": "not_authorised", "reason": "Not monitor user"}, 401),
            Refused,
            "HOST/api/overview: 401 user 'guest' lacks the tag `monitoring` and sees only its own objects; "
            "rabbitmqctl set_user_tags guest monitoring",
            id="own-only",
        ),
        pytest.param(
            json({"error": "not_authorised", "reason": "User can only log in via localhost"}, 401),
            Refused,
            "HOST/api/overview: 401 user 'guest' may only log in from the broker's own host; "
            "create a user with the tag `monitoring`",
            id="guest-from-afar",
        ),
        pytest.param(
            reply(b"no", 403, "text/plain"),
            Refused,
            "HOST/api/overview: 403 access refused to user 'guest'; "
            "give it the tag `monitoring`, or check what a proxy in between allows",
            id="forbidden",
        ),
        pytest.param(
            json({"error": "Object Not Found", "reason": "Not Found"}, 404),
            BadAnswer,
            "HOST/api/overview: 404, no management API here; check that the plugin is enabled "
            "(`rabbitmq-plugins enable rabbitmq_management`) and that the path prefix of the address is right",
            id="not-found",
        ),
        pytest.param(
            reply(b"", 302, "text/html", Location="https://login.example/"),
            BadAnswer,
            "HOST/api/overview: 302 redirects to https://login.example/; use that address, redirects are not followed",
            id="redirect",
        ),
        pytest.param(
            json({"error": "bad_request", "reason": "Stats in management UI are disabled on this node"}, 400),
            NoStatistics,
            "HOST/api/overview: 400, this broker collects no statistics (`management.disable_stats` or "
            "`management_agent.disable_metrics_collector`); enable them to see this",
            id="no-statistics",
        ),
        pytest.param(
            json({"error": "Internal Server Error", "reason": "badmatch"}, 500),
            BadAnswer,
            "HOST/api/overview: 500 from the server (badmatch); see the broker's log at this time",
            id="crash",
        ),
        pytest.param(
            reply(b"<html>down", 503, "text/html"),
            Unreachable,
            "HOST/api/overview: 503 not available; the node or a proxy is not ready, try later",
            id="unavailable",
        ),
        pytest.param(
            reply(b"<!doctype html><title>Sign in</title>", 200, "text/html"),
            BadAnswer,
            "HOST/api/overview: a web page instead of JSON; is this the management API, or a proxy's login page?",
            id="html",
        ),
        pytest.param(
            reply(b'{"management_version":"3.1'),
            BadAnswer,
            "HOST/api/overview: not JSON (26 bytes), truncated or not the management API; try again",
            id="half-json",
        ),
    ],
)
def test_each_refusal_is_one_clear_line(route, kind, text):
    """It says what, where and what to do, without the password."""
    assert (kind, text) == error_of(route)


def test_a_truncated_answer_is_an_error():
    """Fewer bytes than announced are not an answer."""

    def route(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b'{"a":')
        request.close_connection = True

    assert (
        BadAnswer,
        "HOST/api/overview: truncated answer; the node or a proxy closed the connection, try again",
    ) == error_of(route)


def test_a_server_that_hangs_costs_the_timeout():
    """And no more."""
    release = threading.Event()

    def route(request):
        release.wait(30)

    try:
        assert (
            Unreachable,
            "HOST/api/overview: no full answer within 0.2 s; the node hangs, or is slow: raise timeout",
        ) == error_of(route, timeout=0.2)
    finally:
        release.set()


@pytest.mark.parametrize("in_headers", [True, False], ids=["headers", "body"])
def test_a_server_that_sends_single_bytes_costs_the_timeout(in_headers):
    """A byte now and then does not extend the deadline of the whole answer."""
    release = threading.Event()

    def route(request):
        if in_headers:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        else:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not release.wait(0.02):
            request.wfile.write(b"1")

    try:
        assert (
            Unreachable,
            "HOST/api/overview: no full answer within 0.3 s; the node hangs, or is slow: raise timeout",
        ) == error_of(route, timeout=0.3)
    finally:
        release.set()


def test_an_answer_has_a_maximum_size(monkeypatch):
    """An endless answer is not read to its end."""
    monkeypatch.setattr("exporter.broker.client.MAX_BYTES", 2**20)

    assert (
        BadAnswer,
        "HOST/api/overview: the answer is larger than 1 MiB; stopped reading",
    ) == error_of(reply(b" " * (2**20 + 1)))


def test_a_refused_connection_says_what_to_check():
    """Nothing listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = ManagementClient(ManagementSettings(url=f"http://u:s3cret@127.0.0.1:{port}/rabbit"))

    with pytest.raises(Unreachable) as caught:
        client.get(PATH)

    assert (
        f"127.0.0.1:{port}/rabbit/api/overview: connection refused; check that the node is up, that the port is right "
        "(15672), and that the plugin is enabled (`rabbitmq-plugins enable rabbitmq_management`); a node in "
        "maintenance refuses, too (`rabbitmq-diagnostics status`)"
    ) == str(caught.value)


def test_an_unknown_host_is_reported():
    """The name does not resolve (the domain is reserved for that)."""
    client = ManagementClient(ManagementSettings(url="http://mq.invalid"))

    with pytest.raises(Unreachable) as caught:
        client.get(PATH)

    assert ("mq.invalid:15672/api/overview: unknown host name; check the spelling and the resolver") == str(
        caught.value
    )


def test_an_amqp_port_is_recognised():
    """An answer with the AMQP header is not HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"AMQP\x00\x00\x09\x01")

        thread = threading.Thread(target=answer)
        thread.start()
        client = ManagementClient(ManagementSettings(url=f"http://{where}"))
        with pytest.raises(BadAnswer) as caught:
            client.get(PATH)
        thread.join()

    assert (
        f"{where}/api/overview: not HTTP; is this an AMQP port (management: 15672), or a TLS port (https://)?"
    ) == str(caught.value)


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1: (certificate file, key file)."""
    return make(tmp_path_factory.mktemp("tls"), "ackscope-test")


@pytest.fixture
def tls_server(certificate):
    """A TLS server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with serve({PATH: json({"tls": True})}) as server:
        server._http.socket = context.wrap_socket(server._http.socket, server_side=True, do_handshake_on_connect=False)
        yield server


def test_tls_with_the_right_authority(tls_server, certificate):
    """ca_file is trusted, and the deadline holds with TLS too."""
    client = ManagementClient(ManagementSettings(url=f"https://{tls_server.where}", ca_file=certificate[0]))
    answer = client.get(PATH)
    client.close()

    assert answer == {"tls": True}


def test_tls_without_verification(tls_server):
    """verify: false trusts any certificate, without a warning per request."""
    client = ManagementClient(ManagementSettings(url=f"https://{tls_server.where}", verify=False))
    answer = client.get(PATH)
    client.close()

    assert answer == {"tls": True}


def test_an_untrusted_certificate_is_reported(tls_server):
    """The error names the setting that helps."""
    client = ManagementClient(ManagementSettings(url=f"https://{tls_server.where}"))

    with pytest.raises(Unreachable) as caught:
        client.get(PATH)

    assert (
        f"{tls_server.where}/api/overview: certificate not trusted (self-signed certificate); "
        "set ca_file to the certificate of its authority"
    ) == str(caught.value)


def test_tls_to_a_plain_port():
    """https:// to an HTTP port."""
    with serve({PATH: json({})}) as server:
        client = ManagementClient(ManagementSettings(url=f"https://{server.where}"))
        with pytest.raises(Unreachable) as caught:
            client.get(PATH)

    assert (f"{server.where}/api/overview: the port does not speak TLS; use http:// or the TLS port (15671)") == str(
        caught.value
    )


def test_plain_http_to_a_tls_port(tls_server):
    """http:// to a TLS port."""
    client = ManagementClient(ManagementSettings(url=f"http://{tls_server.where}"))

    with pytest.raises((Unreachable, BadAnswer)) as caught:
        client.get(PATH)

    assert "TLS port (https://)" in str(caught.value)


def test_a_missing_ca_file_is_reported(tmp_path):
    """The setting and the file are named before any request."""
    file = tmp_path / "absent.pem"

    with pytest.raises(ConfigError) as caught:
        ManagementClient(ManagementSettings(url="https://mq", ca_file=file), "clusters.shop.management")

    assert (
        f"clusters.shop.management.ca_file: cannot read PEM certificates from {file}; "
        "use the certificate of the authority that signed the broker's"
    ) == str(caught.value)


def test_a_ca_file_without_a_certificate_is_reported(tmp_path):
    """Like a missing file."""
    file = tmp_path / "ca.pem"
    file.write_text("not a certificate")

    with pytest.raises(ConfigError) as caught:
        ManagementClient(ManagementSettings(url="https://mq", ca_file=file))

    assert str(caught.value).startswith(f"management.ca_file: cannot read PEM certificates from {file}; ")


def test_the_transport_matches_urllib3():
    """The deadline relies on how urllib3 creates responses: its pools use our connections."""
    client = ManagementClient(ManagementSettings(url="http://127.0.0.1:1"))
    pool = client._session.get_adapter("http://127.0.0.1:1").poolmanager.connection_from_url("http://127.0.0.1:1")

    assert issubclass(pool.ConnectionCls, urllib3.connection.HTTPConnection)
    assert "getresponse" in vars(pool.ConnectionCls)
