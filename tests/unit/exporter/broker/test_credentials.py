"""Passwords and tokens that change, and tokens of an OAuth 2 server."""

import threading
from base64 import b64encode

import pytest

from ackscope.errors import BadAnswer, BrokerError, ConfigError, Refused, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.credentials import credentials_from
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, reply, serve

PATH, TOKENS = "/api/overview", "/oauth/token"


def basic(user, password):
    """The basic authentication header."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def only(header):
    """A route that accepts this header and answers 401 like RabbitMQ to others; `header` may be changed."""
    held = header if isinstance(header, list) else [header]

    def route(request):
        good = request.headers["Authorization"] == held[0]
        (json({"in": True}) if good else json({"error": "not_authorized", "reason": "Login failed"}, 401))(request)

    return route


def replace_file(file, text):
    """Replace a file atomically, as secret rotation does."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        """The time."""
        return self.seconds


class TokenServer:
    """Issues tokens one after the other; records requests, and may answer something else."""

    def __init__(self, life=100):
        self.life, self.requests, self.instead, self.count = life, [], None, 0

    def __call__(self, request):
        """Answer one request."""
        length = int(request.headers["Content-Length"])
        self.requests.append((request.headers["Authorization"], request.rfile.read(length).decode()))
        if self.instead is not None:
            self.instead(request)
            return
        self.count += 1
        life = {} if self.life is None else {"expires_in": self.life}
        json({"access_token": f"t{self.count}", "token_type": "bearer", **life})(request)


@pytest.fixture
def tokens():
    """The route of the token endpoint."""
    return TokenServer()


@pytest.fixture
def server(tokens):
    """A server that is both broker and token server."""
    with serve({TOKENS: tokens}) as running:
        yield running


def granted(server, **oauth2):
    """Settings of a client that gets its tokens from this server."""
    return ManagementSettings(
        url=f"http://{server.where}",
        oauth2={
            "token_url": f"http://{server.where}{TOKENS}",
            "client_id": "shop monitor",
            "client_secret": "s3:cret",
            **oauth2,
        },
    )


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("key", ["password_file", "token_file"])
def test_a_changed_secret_is_read_again(tmp_path, key):
    """The next request uses the new one without a restart."""
    file = tmp_path / "secret"
    file.write_text("old\nrest\n")
    user = {"username": "ops"} if key == "password_file" else {}
    credentials = credentials_from(ManagementSettings(url="http://mq", **user, **{key: file}))
    before = credentials.header()
    replace_file(file, "new\n")

    after = credentials.header()

    expected = [basic("ops", "old"), basic("ops", "new")] if user else ["Bearer old", "Bearer new"]
    assert expected == [before, after]


@pytest.mark.parametrize("text", [None, "", "\n", "t\0n", b"\xff\xfe"])
def test_an_unreadable_secret_keeps_its_last_value(tmp_path, text):
    """In the middle of a rotation the file may be missing or empty."""
    file = tmp_path / "token"
    file.write_text("good")
    credentials = credentials_from(ManagementSettings(url="http://mq", token_file=file))
    if text is None:
        file.unlink()
    elif isinstance(text, bytes):
        file.write_bytes(text)
    else:
        file.write_text(text)

    assert credentials.header() == "Bearer good"


def test_a_refused_password_is_read_again_and_retried_once(tmp_path):
    """Even if the file looks unchanged: same size, same timestamp."""
    file = tmp_path / "password"
    file.write_text("old1")
    with serve({PATH: only(basic("guest", "new1"))}) as server:
        client = ManagementClient(ManagementSettings(url=f"http://{server.where}", password_file=file))
        client._credentials._file._version = None
        client._credentials._file._file_version = lambda: None
        file.write_text("new1")
        answer = client.get(PATH)
        client.close()

    assert ({"in": True}, [PATH, PATH]) == (answer, server.seen)


def test_an_unchanged_refused_password_is_not_retried(tmp_path):
    """The broker does not get the same refused password twice."""
    file = tmp_path / "password"
    file.write_text("wrong")
    with serve({PATH: only(basic("guest", "right"))}) as server:
        client = ManagementClient(ManagementSettings(url=f"http://{server.where}", password_file=file))
        with pytest.raises(Refused) as caught:
            client.get(PATH)
        client.close()

    assert f"{server.where}{PATH}: 401 wrong user or password (user 'guest'); check username and password" == str(
        caught.value
    )
    assert [PATH] == server.seen


def test_a_refused_token_is_reported_in_one_line():
    """Without the token, and with what a token must contain."""
    with serve({PATH: json({"error": "not_authorised", "reason": "Invalid token"}, 401)}) as server:
        client = ManagementClient(ManagementSettings(url=f"http://{server.where}", token="s3cret.token"))
        with pytest.raises(Refused) as caught:
            client.get(PATH)
        client.close()

    assert (
        f"{server.where}{PATH}: 401 the token is refused (Invalid token); check that it has not expired, that its "
        "audience is the broker, and that it has a scope such as rabbitmq.tag:monitoring"
    ) == str(caught.value)


@pytest.mark.parametrize("name", ["token_file", "password_file"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "{file} cannot be read (No such file or directory); check its path and owner"),
        (b"", "{file} is empty; write the secret on its first line"),
        (b"\xff\xfe\x00", "{file} is not a text file; write the secret on its first line"),
    ],
)
def test_a_file_without_a_secret_is_reported_at_the_start(tmp_path, name, content, text):
    """The setting and the file are named before any request."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        ManagementClient(ManagementSettings(url="http://mq", **{name: file}), "clusters.shop.management")

    assert f"clusters.shop.management.{name}: {text.format(file=file)}" == str(caught.value)


def test_a_token_of_several_words_is_invalid():
    """It would end the header or inject another one."""
    with pytest.raises(ConfigError) as caught:
        credentials_from(ManagementSettings(url="http://mq", token="s3cret\r\nX-Evil: 1"), "management")

    assert "management.token: invalid token; use a single word of printable ASCII characters" == str(caught.value)


# ---------------------------------------------------------------- OAuth 2


def test_a_token_is_requested_once_and_sent(server, tokens):
    """Client and secret by basic authentication, both encoded; the scope in the form."""
    server.routes[PATH] = only("Bearer t1")
    client = ManagementClient(granted(server, scope="rabbitmq.tag:monitoring"))
    for _ in range(3):
        client.get(PATH)
    client.close()

    form = "grant_type=client_credentials&scope=rabbitmq.tag%3Amonitoring"
    assert [(basic("shop+monitor", "s3%3Acret"), form)] == tokens.requests


@pytest.mark.parametrize(("life", "good_until", "renewed_at"), [(100, 89, 91), (3600, 3539, 3541), (None, 269, 271)])
def test_the_next_token_is_requested_before_expiry(server, tokens, life, good_until, renewed_at):
    """A tenth of its lifetime early, at most a minute; the lifetime is 300 s if unknown."""
    tokens.life = life
    clock = Clock()
    credentials = credentials_from(granted(server), now=clock)
    headers = [credentials.header()]
    for seconds in (good_until, renewed_at):
        clock.seconds = 1000.0 + seconds
        headers.append(credentials.header())

    assert ["Bearer t1", "Bearer t1", "Bearer t2"] == headers


def test_a_valid_token_bridges_a_failure(server, tokens):
    """Until it expires: then the failure is reported, and the token server is not contacted for 5 s."""
    clock = Clock()
    credentials = credentials_from(granted(server), now=clock)
    credentials.header()
    tokens.instead = json({}, 503)
    clock.seconds += 95
    bridged = credentials.header()
    clock.seconds += 6
    for _ in range(3):
        with pytest.raises(Unreachable) as caught:
            credentials.header()
    requested = len(tokens.requests)
    tokens.instead = None
    clock.seconds += 6

    assert ("Bearer t1", 3, "Bearer t2") == (bridged, requested, credentials.header())
    assert (
        f"{server.where}{TOKENS}: 503 no token for client 'shop monitor'; the token server is not ready, try later"
    ) == str(caught.value)


def test_a_revoked_token_is_replaced(server, tokens):
    """Refused before it expired: a new one is requested, and the request is sent again."""
    server.routes[PATH] = only("Bearer t2")
    client = ManagementClient(granted(server))
    answer = client.get(PATH)
    client.close()

    assert ({"in": True}, 2) == (answer, len(tokens.requests))


def test_connections_of_a_cluster_share_their_token(server, tokens):
    """Sixteen concurrent threads cause one token request."""
    credentials = credentials_from(granted(server))
    headers = []
    threads = [threading.Thread(target=lambda: headers.append(credentials.header())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (["Bearer t1"] * 16, 1) == (headers, len(tokens.requests))


def test_a_changed_client_secret_is_read_again(server, tokens, tmp_path):
    """For the next token."""
    file = tmp_path / "secret"
    file.write_text("one")
    clock = Clock()
    credentials = credentials_from(granted(server, client_secret=None, client_secret_file=file), now=clock)
    credentials.header()
    replace_file(file, "second")
    clock.seconds += 99
    credentials.header()

    assert [basic("shop+monitor", "one"), basic("shop+monitor", "second")] == [header for header, _ in tokens.requests]


@pytest.mark.parametrize(
    ("instead", "kind", "text"),
    [
        (
            json({"error": "invalid_client", "error_description": "Bad credentials"}, 401),
            Refused,
            "401 no token for client 'shop monitor' (Bad credentials); check client_id, client_secret and scope",
        ),
        (
            json({"error": "invalid_scope"}, 400),
            Refused,
            "400 no token for client 'shop monitor' (invalid_scope); check client_id, client_secret and scope",
        ),
        (
            reply(b"", 302, Location="/login"),
            BadAnswer,
            "302 no token for client 'shop monitor'; is this the token endpoint?",
        ),
    ],
    ids=["refused", "scope", "redirect"],
)
def test_a_refused_token_request_is_reported_in_one_line(server, tokens, instead, kind, text):
    """It says what, where and what to do, without the secret; the broker is not contacted."""
    tokens.instead = instead
    client = ManagementClient(granted(server))
    with pytest.raises(BrokerError) as caught:
        client.get(PATH)
    client.close()

    assert (kind, f"{server.where}{TOKENS}: {text}") == (type(caught.value), str(caught.value))
    assert PATH not in server.seen


@pytest.mark.parametrize(
    "instead",
    [
        reply(b"<html>", 200, "text/html"),
        json({"access_token": ""}),
        json({"access_token": "a\nb"}),
        json(["t"]),
        reply(b"x" * (2**20 + 9)),
    ],
    ids=["html", "empty", "lines", "list", "huge"],
)
def test_an_answer_without_a_token_is_reported_in_one_line(server, tokens, instead):
    """Whatever it contains instead."""
    tokens.instead = instead

    with pytest.raises(BadAnswer) as caught:
        credentials_from(granted(server)).header()

    assert f"{server.where}{TOKENS}: an answer without access_token; is this the token endpoint?" == str(caught.value)


def test_an_unreachable_token_server_is_reported_in_one_line(server):
    """Like any other unreachable server."""
    client = ManagementClient(granted(server, token_url="http://127.0.0.1:1/oauth/token"))
    with pytest.raises(Unreachable) as caught:
        client.get(PATH)
    client.close()

    assert (
        "127.0.0.1:1/oauth/token: connection refused; check that the token server is up and its address is right"
        == str(caught.value)
    )
