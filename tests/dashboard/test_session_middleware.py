"""The session middleware in front of a fake application, with cookies signed by Streamlit."""

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
    """A clock that stands still."""

    def now(self) -> Instant:
        """The fixed time."""
        return Instant(WALL, 0.0)


def login(scheme: str = "https") -> LoginConfig:
    """A dashboard below /ops."""
    return LoginConfig(
        RULES, "https://login/.well-known/", "me", f"{scheme}://page/ops/oauth2callback", "openid", "hush", KEY
    )


def signed(email: str = "ann@example.org", ago: float = 60.0, key: str = KEY, **claims: object) -> str:
    """The Cookie header of somebody who signed in so many seconds ago."""
    told = {"is_logged_in": True, "iat": WALL - ago, "email": email, "email_verified": True, **claims}
    return f"{USER_COOKIE_NAME}={create_signed_value(key, USER_COOKIE_NAME, json.dumps(told)).decode()}"


class Streamlit:
    """A fake Streamlit: sends a fixed response to everything and records the requests."""

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
    """A response."""

    def __init__(self, sent: list[dict[str, Any]]) -> None:
        self.status = sent[0]["status"]
        self.headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        self.body = b"".join(message["body"] for message in sent[1:])

    def cookie(self, name: str) -> str | None:
        """The cookie that the response sets."""
        found = [value for key, value in self.headers if key == "set-cookie" and value.startswith(f"{name}=")]
        return found[0] if found else None


def request(path: str, cookie: str = "", query: str = "", **headers: str) -> dict[str, Any]:
    """One request, as an ASGI scope."""
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
    """Send one request."""
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
def test_downloads_and_metrics_are_protected(path: str, cookie: str) -> None:
    """The request does not reach Streamlit."""
    behind = Streamlit()
    answer = ask(path, behind, cookie)

    assert (401, b"sign in first\n") == (answer.status, answer.body)
    assert [] == behind.asked


@pytest.mark.parametrize("path", SHUT)
def test_they_are_available_with_access(path: str) -> None:
    """Like the pages."""
    assert b"from streamlit" == ask(path, Streamlit(), signed()).body


@pytest.mark.parametrize(
    "path", ["/ops/_stcore/health", "/ops/_stcore/host-config", "/ops/static/js/index.js", "/ops/"]
)
def test_paths_without_data_are_public(path: str) -> None:
    """Also health: an orchestrator does not sign in."""
    assert b"from streamlit" == ask(path, Streamlit()).body


def test_the_requested_address_is_restored_after_signing_in() -> None:
    """A cookie stores it for 15 minutes, and is deleted afterwards."""
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
def test_only_pages_are_stored_as_return_address(path: str, query: str, headers: dict[str, str]) -> None:
    """Other requests do not overwrite it."""
    assert ask(path, Streamlit(), query=query, **headers).cookie(cookies.RETURN_COOKIE) is None


def test_with_access_no_return_address_is_stored() -> None:
    """The page is shown at once."""
    assert ask("/ops/queues", Streamlit(), signed(), **ASKED).cookie(cookies.RETURN_COOKIE) is None


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.test/ops/", "//evil.test/ops/", "/ops/..\\evil", "/elsewhere", "/ops", "ops/", "/ops/\r\nx: y",
        "", "/ops/" + "x" * 2000, "/ops/ä", "/opsx/",
    ],
)  # fmt: skip
def test_the_return_address_stays_on_this_host(address: str) -> None:
    """Whatever the cookie contains."""
    kept = cookies.return_cookie(address, "/ops", secure=True)[1].decode().partition(";")[0]
    given = Streamlit(302, ("location", "/ops/"), ("set-cookie", signed()))

    assert "/ops/" == dict(ask("/ops/oauth2callback", given, kept, query="code=1").headers)["location"]


def test_a_failed_sign_in_redirects_to_the_sign_in_page() -> None:
    """The identity cookie is cleared, the return address stays for another attempt."""
    refused = Streamlit(302, ("location", "/ops/"), ("set-cookie", f'{USER_COOKIE_NAME}=""; Max-Age=0'))
    answer = ask("/ops/oauth2callback", refused, f"{cookies.RETURN_COOKIE}=/ops/queues", query="code=1&state=2")

    assert "/ops/?signin=failed" == dict(answer.headers)["location"]
    assert answer.cookie(cookies.RETURN_COOKIE) is None


def test_after_signing_out_the_sign_in_page_is_shown() -> None:
    """The provider sends no parameters: Streamlit would log an error."""
    behind = Streamlit()
    answer = ask("/ops/oauth2callback", behind)

    assert (302, "/ops/") == (answer.status, dict(answer.headers)["location"])
    assert [] == behind.asked


def test_an_unreachable_provider_is_explained() -> None:
    """Streamlit's own text does not help."""
    answer = ask("/ops/auth/login", Streamlit(400, ("content-length", "20")), query="provider=x")

    assert 502 == answer.status
    assert answer.body.startswith(b"The sign-in provider cannot be reached. Try again later;")
    assert {"content-type": "text/plain; charset=utf-8", "content-length": str(len(answer.body))} == dict(
        answer.headers
    )


@pytest.mark.parametrize(("scheme", "secure"), [("https", True), ("http", False)])
def test_cookies_are_secure_over_https(scheme: str, secure: bool) -> None:  # noqa: FBT001
    """By https only if the dashboard is served over https."""
    given = Streamlit(200, ("set-cookie", f"{signed()}; HttpOnly"), ("set-cookie", "_streamlit_xsrf=2|3; Path=/"))
    door = SessionMiddleware(given, login(scheme), "ops", StoppedClock())
    answer = ask("/ops/", given, doorman=door)

    assert [secure, secure] == ["; Secure" in value for _, value in answer.headers]


def talk(doorman: SessionMiddleware, cookie: str, *frames: bytes) -> list[dict[str, Any]]:
    """Open a WebSocket and send these messages; returns the messages that come back."""
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


def test_an_open_page_is_closed_when_its_session_expires() -> None:
    """Nothing is sent afterwards."""
    behind = Streamlit()
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    sent = talk(door, signed(ago=3599.99), b"one")

    assert [{"type": "websocket.close", "code": 1008}] == sent
    assert ["websocket.receive", "websocket.disconnect"] == [message["type"] for message in behind.heard]


def test_a_page_reopened_after_signing_out_is_anonymous() -> None:
    """The identity cookie is removed from the request; other cookies stay."""
    behind = Streamlit()
    behind.heard = [{"type": "websocket.disconnect"}]
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    talk(door, f"a=1; {signed(ago=3601)}; {USER_COOKIE_NAME}_tokens=x;b=2")

    assert [(b"cookie", b"a=1;b=2")] == behind.asked[0]["headers"]


def test_signing_out_invalidates_the_cookie() -> None:
    """In other tabs and for other holders; another sign-in is not affected."""
    behind = Streamlit()
    door = SessionMiddleware(behind, login(), "ops", StoppedClock())
    mine, again = signed(nonce="1"), signed(nonce="2")
    ask("/ops/auth/logout", behind, mine, doorman=door)

    assert 401 == ask("/ops/media/a", behind, mine, doorman=door).status
    assert 200 == ask("/ops/media/a", behind, again, doorman=door).status


def test_an_open_page_is_closed_when_its_owner_signs_out() -> None:
    """At once; later messages from it are ignored."""

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


def test_other_scopes_pass() -> None:
    """Startup and shutdown of the server."""
    seen: list[str] = []

    async def application(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(SessionMiddleware(application, login(), "ops", StoppedClock())({"type": "lifespan"}, None, None))

    assert ["lifespan"] == seen


def test_an_error_is_one_line_in_the_log() -> None:
    """What, where and why, without a traceback."""
    try:
        int("x")
    except ValueError:
        record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "no %s.", ("answer",), sys.exc_info())

    assert SingleLineErrors("https://login/").filter(record)
    assert "no answer. (ValueError: invalid literal for int() with base 10: 'x'; the provider is https://login/)" == (
        logging.Formatter().format(record)
    )
