"""What is sent to be let in: passwords and tokens that change, and tokens that are asked for."""

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
    """The header of user and password."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def only(header):
    """A route that lets this header in; 401, as RabbitMQ answers, to all others. `header` may be changed."""
    held = header if isinstance(header, list) else [header]

    def route(request):
        good = request.headers["Authorization"] == held[0]
        (json({"in": True}) if good else json({"error": "not_authorized", "reason": "Login failed"}, 401))(request)

    return route


def replace_file(file, text):
    """Put a new file in its place, as a secret's rotation does."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        """The time."""
        return self.seconds


class TokenServer:
    """Hands out tokens one after the other; what it was asked, and what it answers instead."""

    def __init__(self, life=100):
        self.life, self.asked, self.instead, self.count = life, [], None, 0

    def __call__(self, request):
        """Answer one request."""
        length = int(request.headers["Content-Length"])
        self.asked.append((request.headers["Authorization"], request.rfile.read(length).decode()))
        if self.instead is not None:
            self.instead(request)
            return
        self.count += 1
        life = {} if self.life is None else {"expires_in": self.life}
        json({"access_token": f"t{self.count}", "token_type": "bearer", **life})(request)


@pytest.fixture
def tokens():
    """What answers at the token endpoint."""
    return TokenServer()


@pytest.fixture
def server(tokens):
    """A server that is broker and token server."""
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
def test_a_secret_that_changes_is_read_again(tmp_path, key):
    """The next request has the new one; nothing is restarted."""
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
def test_a_secret_that_cannot_be_read_any_more_stays_as_it_was(tmp_path, text):
    """In the middle of a rotation the file may be away, or empty."""
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


def test_a_password_that_is_refused_is_read_again_and_tried_once_more(tmp_path):
    """Even where the file looks as before: same size, same second."""
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


def test_a_password_that_stays_refused_is_told_after_one_try(tmp_path):
    """The broker is not asked twice with what it has refused."""
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


def test_a_token_that_is_refused_is_told_in_one_line():
    """Without the token, and with what a token must hold."""
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
def test_a_file_without_a_secret_is_told_at_the_start(tmp_path, name, content, text):
    """The key and the file are named before anything is asked."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        ManagementClient(ManagementSettings(url="http://mq", **{name: file}), "clusters.shop.management")

    assert f"clusters.shop.management.{name}: {text.format(file=file)}" == str(caught.value)


def test_a_token_of_several_words_is_no_token():
    """It would end the header, or hide another one in it."""
    with pytest.raises(ConfigError) as caught:
        credentials_from(ManagementSettings(url="http://mq", token="s3cret\r\nX-Evil: 1"), "management")

    assert "management.token: invalid token; use a single word of printable ASCII characters" == str(caught.value)


# ---------------------------------------------------------------- OAuth 2


def test_a_token_is_asked_for_once_and_sent(server, tokens):
    """Client and secret by basic authentication, both encoded; the scope in the form."""
    server.routes[PATH] = only("Bearer t1")
    client = ManagementClient(granted(server, scope="rabbitmq.tag:monitoring"))
    for _ in range(3):
        client.get(PATH)
    client.close()

    form = "grant_type=client_credentials&scope=rabbitmq.tag%3Amonitoring"
    assert [(basic("shop+monitor", "s3%3Acret"), form)] == tokens.asked


@pytest.mark.parametrize(("life", "good_until", "renewed_at"), [(100, 89, 91), (3600, 3539, 3541), (None, 269, 271)])
def test_the_next_token_is_asked_for_before_the_end(server, tokens, life, good_until, renewed_at):
    """A tenth of its life before its end, a minute at most; 300 s where its life is not told."""
    tokens.life = life
    clock = Clock()
    credentials = credentials_from(granted(server), now=clock)
    headers = [credentials.header()]
    for seconds in (good_until, renewed_at):
        clock.seconds = 1000.0 + seconds
        headers.append(credentials.header())

    assert ["Bearer t1", "Bearer t1", "Bearer t2"] == headers


def test_a_token_that_is_still_good_bridges_a_failure(server, tokens):
    """Until its end: then the failure is told, and the server is left alone for 5 s."""
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
    asked = len(tokens.asked)
    tokens.instead = None
    clock.seconds += 6

    assert ("Bearer t1", 3, "Bearer t2") == (bridged, asked, credentials.header())
    assert (
        f"{server.where}{TOKENS}: 503 no token for client 'shop monitor'; the token server is not ready, try later"
    ) == str(caught.value)


def test_a_token_that_was_revoked_is_replaced(server, tokens):
    """Refused before its end: another one is asked for, and the request is made once more."""
    server.routes[PATH] = only("Bearer t2")
    client = ManagementClient(granted(server))
    answer = client.get(PATH)
    client.close()

    assert ({"in": True}, 2) == (answer, len(tokens.asked))


def test_connections_of_a_cluster_share_their_token(server, tokens):
    """Sixteen threads that ask at once ask the token server once."""
    credentials = credentials_from(granted(server))
    headers = []
    threads = [threading.Thread(target=lambda: headers.append(credentials.header())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (["Bearer t1"] * 16, 1) == (headers, len(tokens.asked))


def test_a_client_secret_that_changes_is_read_again(server, tokens, tmp_path):
    """For the next token."""
    file = tmp_path / "secret"
    file.write_text("one")
    clock = Clock()
    credentials = credentials_from(granted(server, client_secret=None, client_secret_file=file), now=clock)
    credentials.header()
    replace_file(file, "second")
    clock.seconds += 99
    credentials.header()

    assert [basic("shop+monitor", "one"), basic("shop+monitor", "second")] == [header for header, _ in tokens.asked]


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
def test_a_token_that_cannot_be_had_is_told_in_one_line(server, tokens, instead, kind, text):
    """What, where and what to do, without the secret; the broker is not asked."""
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
def test_an_answer_without_a_token_is_told_in_one_line(server, tokens, instead):
    """Whatever it is instead."""
    tokens.instead = instead

    with pytest.raises(BadAnswer) as caught:
        credentials_from(granted(server)).header()

    assert f"{server.where}{TOKENS}: an answer without access_token; is this the token endpoint?" == str(caught.value)


def test_a_token_server_that_is_away_is_told_in_one_line(server):
    """As anything else that does not answer."""
    client = ManagementClient(granted(server, token_url="http://127.0.0.1:1/oauth/token"))
    with pytest.raises(Unreachable) as caught:
        client.get(PATH)
    client.close()

    assert (
        "127.0.0.1:1/oauth/token: connection refused; check that the token server is up and its address is right"
        == str(caught.value)
    )
