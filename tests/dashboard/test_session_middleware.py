"""What stands before Streamlit's server, with a plain application in its place and cookies that Streamlit signed."""

import asyncio
import json
import logging
import sys
from typing import Any

import pytest
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from ackscope.clock import Instant
from dashboard.auth import cookies
from dashboard.auth.access_rules import AccessRules
from dashboard.auth.login_file import LoginConfig
from dashboard.auth.session_middleware import SessionMiddleware, SingleLineErrors

KEY = "k" * 32
WALL = 1_800_000_000.0
ASKED = {"sec-fetch-mode": "navigate"}
RULES = AccessRules(emails=("ann@example.org",), domains=(), claims={}, session=3600.0)


class StoppedClock:
    """It is always the same moment."""

    def now(self) -> Instant:
        """That moment."""
        return Instant(WALL, 0.0)


def login(scheme: str = "https") -> LoginConfig:
    """A page below /ops."""
    return LoginConfig(
        RULES, "https://login/.well-known/", "me", f"{scheme}://page/ops/oauth2callback", "openid", "hush", KEY
    )


def signed(email: str = "ann@example.org", ago: float = 60.0, key: str = KEY, **claims: object) -> str:
    """What a browser sends, of somebody who signed in so many seconds ago."""
    told = {"is_logged_in": True, "iat": WALL - ago, "email": email, "email_verified": True, **claims}
    return f"{USER_COOKIE_NAME}={create_signed_value(key, USER_COOKIE_NAME, json.dumps(told)).decode()}"


class Streamlit:
    """In its place: answers everything with what it is told to, and keeps what it was asked."""

    def __init__(self, status: int = 200, *headers: tuple[str, str]) -> None:
        self.status = status
        self.headers = [(name.encode(), value.encode()) for name, value in headers]
        self.asked: list[dict[str, Any]] = []
        self.heard: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer as told; a page listens until it is closed."""
        self.asked.append(scope)
        if scope["type"] == "websocket":
            while not self.heard or self.heard[-1]["type"] != "websocket.disconnect":
                self.heard.append(await receive())
            await send({"type": "websocket.send", "bytes": b"too late"})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"from streamlit"})


class Answer:
    """What came back."""

    def __init__(self, sent: list[dict[str, Any]]) -> None:
        self.status = sent[0]["status"]
        self.headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        self.body = b"".join(message["body"] for message in sent[1:])

    def cookie(self, name: str) -> str | None:
        """The cookie that is set."""
        found = [value for key, value in self.headers if key == "set-cookie" and value.startswith(f"{name}=")]
        return found[0] if found else None


def request(path: str, cookie: str = "", query: str = "", **headers: str) -> dict[str, Any]:
    """One request, as ASGI tells it."""
    told = {"cookie": cookie, **headers}
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in told.items()],
    }


def ask(
    path: str,
    behind: Streamlit,
    cookie: str = "",
    query: str = "",
    doorman: SessionMiddleware | None = None,
    **headers: str,
) -> Answer:
    """Make one request."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    door = doorman or SessionMiddleware(behind, login(), "ops", StoppedClock())
    asyncio.run(door(request(path, cookie, query, **headers), None, send))
    return Answer(sent)


SHUT = [
    "/ops/media/abc.csv",
    "/ops/_stcore/metrics",
    "/ops/_stcore/upload_file/a/b",
    "/ops/component/x/y.js",
    "/media/a",
]


@pytest.mark.parametrize("path", SHUT)
@pytest.mark.parametrize(
    "cookie",
    [
        pytest.param("", id="nobody"),
        pytest.param(signed("bob@example.org"), id="not listed"),
        pytest.param(signed(ago=3601), id="session over"),
        pytest.param(signed(key="x" * 32), id="signed with another key"),
        pytest.param(signed() + "x", id="changed"),
        pytest.param(f"{USER_COOKIE_NAME}=\xff", id="no text"),
    ],
)
def test_downloads_and_figures_are_shut(path: str, cookie: str) -> None:
    """Streamlit does not hear of the request."""
    behind = Streamlit()
    answer = ask(path, behind, cookie)

    assert (401, b"sign in first\n") == (answer.status, answer.body)
    assert [] == behind.asked


@pytest.mark.parametrize("path", SHUT)
def test_they_are_open_to_who_may_see_the_page(path: str) -> None:
    """As the page is."""
    assert b"from streamlit" == ask(path, Streamlit(), signed()).body


@pytest.mark.parametrize(
    "path", ["/ops/_stcore/health", "/ops/_stcore/host-config", "/ops/static/js/index.js", "/ops/"]
)
def test_what_holds_nothing_is_open(path: str) -> None:
    """Health too: an orchestrator does not sign in."""
    assert b"from streamlit" == ask(path, Streamlit()).body


def test_the_address_is_kept_while_somebody_signs_in() -> None:
    """The browser keeps it for a quarter of an hour, and the way back leads there; then it is forgotten."""
    kept = ask("/ops/queues", Streamlit(), query="cluster=a%20b&find=x;y", **ASKED).cookie(cookies.RETURN_COOKIE)
    given = Streamlit(302, ("location", "/ops/"), ("set-cookie", f"{signed()}; HttpOnly; SameSite=lax"))
    answer = ask("/ops/oauth2callback", given, kept.partition(";")[0], query="code=1&state=2")

    assert "Max-Age=900; Path=/ops; HttpOnly; SameSite=Lax; Secure" in kept
    assert "/ops/queues?cluster=a%20b&find=x;y" == dict(answer.headers)["location"]
    assert "Max-Age=0" in answer.cookie(cookies.RETURN_COOKIE)


@pytest.mark.parametrize(
    ("path", "query", "headers"),
    [
        pytest.param("/ops/static/index.js", "", {"accept": "*/*"}, id="a part of a page"),
        pytest.param("/ops/", "signin=failed", ASKED, id="the door itself"),
        pytest.param("/ops/auth/login", "provider=x", ASKED, id="on the way to the provider"),
    ],
)
def test_only_pages_are_kept(path: str, query: str, headers: dict[str, str]) -> None:
    """What was wanted before stays."""
    assert ask(path, Streamlit(), query=query, **headers).cookie(cookies.RETURN_COOKIE) is None


def test_nothing_is_kept_of_who_is_in() -> None:
    """They are where they wanted to be."""
    assert ask("/ops/queues", Streamlit(), signed(), **ASKED).cookie(cookies.RETURN_COOKIE) is None


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.test/ops/", "//evil.test/ops/", "/ops/..\\evil", "/elsewhere", "/ops", "ops/", "/ops/\r\nx: y",
        "", "/ops/" + "x" * 2000, "/ops/ä", "/opsx/",
    ],
)  # fmt: skip
def test_the_way_back_stays_on_this_page(address: str) -> None:
    """Whatever somebody put into the cookie."""
    kept = cookies.return_cookie(address, "/ops", secure=True)[1].decode().partition(";")[0]
    given = Streamlit(302, ("location", "/ops/"), ("set-cookie", signed()))

    assert "/ops/" == dict(ask("/ops/oauth2callback", given, kept, query="code=1").headers)["location"]


def test_who_did_not_succeed_is_told() -> None:
    """The cookie is cleared, the way is kept for another try."""
    refused = Streamlit(302, ("location", "/ops/"), ("set-cookie", f'{USER_COOKIE_NAME}=""; Max-Age=0'))
    answer = ask("/ops/oauth2callback", refused, f"{cookies.RETURN_COOKIE}=/ops/queues", query="code=1&state=2")

    assert "/ops/?signin=failed" == dict(answer.headers)["location"]
    assert answer.cookie(cookies.RETURN_COOKIE) is None


def test_back_from_signing_out_is_the_door() -> None:
    """The provider sends nothing along: Streamlit would complain in the log."""
    behind = Streamlit()
    answer = ask("/ops/oauth2callback", behind)

    assert (302, "/ops/") == (answer.status, dict(answer.headers)["location"])
    assert [] == behind.asked


def test_a_provider_that_is_away_is_told_in_words() -> None:
    """Streamlit's two words would help nobody."""
    answer = ask("/ops/auth/login", Streamlit(400, ("content-length", "20")), query="provider=x")

    assert 502 == answer.status
    assert answer.body.startswith(b"The sign-in provider cannot be reached. Try again later;")
    assert {"content-type": "text/plain; charset=utf-8", "content-length": str(len(answer.body))} == dict(
        answer.headers
    )


@pytest.mark.parametrize(("scheme", "secure"), [("https", True), ("http", False)])
def test_cookies_travel_as_people_come(scheme: str, secure: bool) -> None:  # noqa: FBT001
    """By https only, where the page is reached by https."""
    given = Streamlit(200, ("set-cookie", f"{signed()}; HttpOnly"), ("set-cookie", "_streamlit_xsrf=2|3; Path=/"))
    door = SessionMiddleware(given, login(scheme), "ops", StoppedClock())
    answer = ask("/ops/", given, doorman=door)

    assert [secure, secure] == ["; Secure" in value for _, value in answer.headers]


def talk(doorman: SessionMiddleware, cookie: str, *frames: bytes) -> list[dict[str, Any]]:
    """Open a page and say these things; the result is what comes back."""
    scope = {"type": "websocket", "path": "/ops/_stcore/stream", "headers": [(b"cookie", cookie.encode())]}
    sent: list[dict[str, Any]] = []
    told = [{"type": "websocket.receive", "bytes": frame} for frame in frames]
    closed = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if told:
            return told.pop(0)
        await closed.wait()
        return {"type": "websocket.disconnect", "code": 1005}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "websocket.close":
            closed.set()

    async def run() -> None:
        await asyncio.wait_for(doorman(scope, receive, send), 30)

    asyncio.run(run())
    return sent


def test_an_open_page_ends_with_its_session() -> None:
    """The connection is closed, and nothing that comes later is sent."""
    behind = Streamlit()
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    sent = talk(door, signed(ago=3599.99), b"one")

    assert [{"type": "websocket.close", "code": 1008}] == sent
    assert ["websocket.receive", "websocket.disconnect"] == [message["type"] for message in behind.heard]


def test_a_page_that_is_opened_again_is_a_strangers() -> None:
    """Streamlit would take it up for the same person: the cookie does not reach it; others do."""
    behind = Streamlit()
    behind.heard = [{"type": "websocket.disconnect"}]
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    talk(door, f"a=1; {signed(ago=3601)}; {USER_COOKIE_NAME}_tokens=x;b=2")

    assert [(b"cookie", b"a=1;b=2")] == behind.asked[0]["headers"]


def test_signing_out_ends_every_page_of_that_person() -> None:
    """Their cookie is worth nothing any more, in other tabs and in other hands; another sign-in is another."""
    behind = Streamlit()
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    mine, again = signed(nonce="1"), signed(nonce="2")
    ask("/ops/auth/logout", behind, mine, doorman=door)

    assert 401 == ask("/ops/media/a", behind, mine, doorman=door).status
    assert 200 == ask("/ops/media/a", behind, again, doorman=door).status


def test_an_open_page_is_closed_when_its_owner_signs_out() -> None:
    """At once; what it still says is not heard."""

    class Leaving(Streamlit):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "websocket":
                self.heard.append(await receive())
                await door(request("/ops/auth/logout", mine), receive, nowhere)
            await super().__call__(scope, receive, send)

    async def nowhere(_message: dict[str, Any]) -> None:
        """Somebody else's answer."""

    behind, mine = Leaving(), signed()
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    sent = talk(door, mine, b"one", b"two", b"three")

    assert ["websocket.receive", "websocket.disconnect"] == [message["type"] for message in behind.heard]
    assert [{"type": "websocket.close", "code": 1008}] == sent


def test_what_is_neither_passes() -> None:
    """The start and the end of the server."""
    seen: list[str] = []

    async def application(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(SessionMiddleware(application, login(), "ops", StoppedClock())({"type": "lifespan"}, None, None))

    assert ["lifespan"] == seen


def test_an_error_is_one_line_of_the_log() -> None:
    """What, where and why, without a traceback."""
    try:
        int("x")
    except ValueError:
        record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "no %s.", ("answer",), sys.exc_info())

    assert SingleLineErrors("https://login/").filter(record)
    assert "no answer. (ValueError: invalid literal for int() with base 10: 'x'; the provider is https://login/)" == (
        logging.Formatter().format(record)
    )
