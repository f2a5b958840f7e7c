"""Signing in and out in a real browser, at a real provider on loopback, with the dashboard below a base path."""

import base64
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import requests
from axe_playwright_python.sync_playwright import Axe
from joserfc import jwt
from joserfc.jwk import OctKey
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.dashboard import answers
from tests.dashboard.answers import Exporter
from tests.dashboard.browser import chromium, settle
from tests.dashboard.command import free_port, serving_page
from tests.dashboard.login_provider import Provider, providing

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BASE = "/ops/ackscope"
WANTED = "/queues?cluster=shop&find=orders"
TOKEN = "eyJ"
"""Every JSON web token begins so: it is `{"` in base64."""

ANN = {"email": "ann@example.org", "email_verified": True}


class House(NamedTuple):
    """A dashboard with a login, its provider and its exporter."""

    url: str
    provider: Provider
    exporter: Exporter
    log: Path
    secrets: tuple[str, str]


@contextmanager
def open_house(folder: Path, session: str) -> Iterator[House]:
    """The real command; ann has access, and signs in again after `session`."""
    port = free_port()
    url = f"http://localhost:{port}{BASE}"
    with answers.serving(answers.sick("shop")) as exporter, providing(folder) as provider:
        name, secret = provider.register(f"{url}/oauth2callback")
        (folder / "client").write_text(secret)
        (folder / "client").chmod(0o600)
        (folder / "login.yml").write_text(
            f"metadata_url: {provider.metadata}\n"
            f"client_id: {name}\n"
            "client_secret_file: client\n"
            "cookie_secret_file: cookie\n"
            f"redirect_uri: {url}/oauth2callback\n"
            f"session: {session}\n"
            "allow: {emails: [ann@example.org]}\n"
        )
        options = ("--login", str(folder / "login.yml"))
        with serving_page(exporter.url, folder / "none", folder, BASE, *options, port=port) as served:
            yield House(url, provider, exporter, served.log, (secret, (folder / "cookie").read_text().strip()))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with sessions of an hour."""
    with open_house(tmp_path_factory.mktemp("login"), "1h") as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    with chromium() as started:
        yield started


@pytest.fixture
def away() -> list[str]:
    """All requests of the page to other hosts."""
    return []


@pytest.fixture
def complaints() -> list[str]:
    """Errors of the page, and errors in the browser's console while it was shown."""
    return []


@pytest.fixture
def page(house: House, browser: Browser, away: list[str], complaints: list[str]) -> Iterator[Page]:
    """An empty page of an unknown person; requests to other hosts are blocked."""
    context = browser.new_context()
    context.set_default_timeout(60_000)
    context.route(lambda url: "//localhost:" not in url, lambda route: route.abort())
    opened = context.new_page()

    def ours() -> bool:
        return opened.url.startswith((house.url, "about:"))

    opened.on("request", lambda sent: away.append(sent.url) if ours() and "//localhost:" not in sent.url else None)
    opened.on("websocket", lambda sent: away.append(sent.url) if "//localhost:" not in sent.url else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if _complains(said) and ours() else None)
    yield opened
    context.close()


def _complains(said: ConsoleMessage) -> bool:
    """Whether a console message is an error; Streamlit's search for its server is not."""
    searched = str(said.location.get("url", "")).endswith(("/queues/_stcore/health", "/queues/_stcore/host-config"))
    return said.type == "error" and not searched


def knock(page: Page, house: House, sub: str, wanted: str = WANTED) -> None:
    """Open the dashboard and sign in at the provider as this person."""
    page.goto(f"{house.url}{wanted}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{house.provider.url}/oauth2/authorize**")
    page.fill("input[name=sub]", sub)
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{house.url}/**")


def sign_in(page: Page, house: House, wanted: str = WANTED) -> None:
    """Sign in as ann and wait for the page."""
    knock(page, house, "ann", wanted)
    page.get_by_text("Signed in as").wait_for()


def names(context: BrowserContext) -> set[str]:
    """Names of the identity cookies."""
    return {cookie["name"] for cookie in context.cookies() if cookie["name"].startswith("_streamlit_user")}


def as_ann(cookie: str) -> str:
    """The cookie of bob, changed to ann, with the old signature; a leading dot marks compressed content."""
    content, signature = cookie.strip('"').removeprefix(".").split(".", 1)
    text = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))
    text = zlib.decompress(text) if cookie.strip('"').startswith(".") else text
    assert b"bob@" in text
    return f"{base64.urlsafe_b64encode(text.replace(b'bob@', b'ann@')).decode().rstrip('=')}.{signature}"


def provider_token(key: str) -> str:
    """The token with which Streamlit's page sends a browser to the provider."""
    ends = int(time.time()) + 60
    return jwt.encode({"alg": "HS256"}, {"provider": "default", "exp": ends}, OctKey.import_key(key))


def test_a_stranger_gets_nothing(house: House, page: Page, away: list[str], complaints: list[str]) -> None:
    """No data of the cluster, no request to the exporter; health is public."""
    frames: list[bytes] = []
    page.on("websocket", lambda opened: opened.on("framereceived", lambda frame: frames.append(bytes(frame))))
    before = len(house.exporter.asked)
    page.goto(f"{house.url}{WANTED}")
    page.get_by_role("button", name="Sign in").wait_for()
    serious = [found for found in Axe().run(page).response["violations"] if found["impact"] in {"serious", "critical"}]

    assert before == len(house.exporter.asked)
    assert [] == serious
    assert frames
    assert not any(b"shop" in frame or b"invoices" in frame for frame in frames)
    assert "ok" == requests.get(f"{house.url}/_stcore/health", timeout=10).text
    assert [] == away
    assert [] == complaints


def test_signing_in_and_out(house: House, page: Page, away: list[str], complaints: list[str]) -> None:
    """To the page Now, and back to the sign-in page; a tab that is loaded again needs a new sign-in."""
    house.provider.say("ann", **ANN)
    sign_in(page, house)
    page.goto(f"{house.url}/?cluster=shop")
    settle(page)
    page.get_by_text("1 critical, 1 warning").wait_for()
    other = page.context.new_page()
    other.goto(f"{house.url}/?cluster=shop")
    other.get_by_text("Signed in as").wait_for()
    shown = page.content() + other.content()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()
    page.get_by_role("button", name="Sign in").wait_for()
    other.reload()
    other.get_by_role("button", name="Sign in").wait_for()

    reported = shown + house.log.read_text()

    assert f"{house.url}/" == page.url
    assert set() == names(page.context)
    assert [] == [secret for secret in (*house.secrets, TOKEN, "Traceback") if secret in reported]
    assert [] == away
    assert [] == complaints


def test_people_without_access_are_reported_and_can_sign_out(house: House, page: Page, away: list[str]) -> None:
    """One sentence, no data of the cluster; changing the cookie does not help."""
    before = len(house.exporter.asked)
    house.provider.say("bob", email="bob@example.org", email_verified=True)
    knock(page, house, "bob")
    page.get_by_text("bob@example.org has no access to this dashboard. Ask the administrator for access.").wait_for()
    [kept] = [cookie for cookie in page.context.cookies() if cookie["name"] == "_streamlit_user"]
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()
    page.get_by_role("button", name="Sign in").wait_for()
    page.context.add_cookies([{**kept, "value": as_ann(kept["value"])}])
    page.goto(f"{house.url}/?cluster=shop")
    page.get_by_role("button", name="Sign in").wait_for()

    assert before == len(house.exporter.asked)
    assert [True] == [
        "access denied" in line and "user=bob@example.org" in line
        for line in house.log.read_text().splitlines()
        if "logger=dashboard.auth.sign_in_page" in line
    ]
    assert [] == away


def test_a_failed_sign_in_leads_back(house: House, page: Page) -> None:
    """A token that was changed after signing: the sign-in page again, and no cookie."""
    house.provider.say("mallory", **ANN)
    knock(page, house, "mallory")
    page.get_by_text("Restricted to broker operators.").wait_for()

    assert set() == names(page.context)


def test_an_open_page_ends_with_its_session(tmp_path: Path, browser: Browser) -> None:
    """A page that nobody touches is replaced by the sign-in page when the session expires."""
    with open_house(tmp_path, "3s") as house:
        house.provider.say("ann", **ANN)
        context = browser.new_context()
        context.set_default_timeout(60_000)
        page = context.new_page()
        knock(page, house, "ann")
        page.get_by_text("Your session has expired after").wait_for()
        context.close()


@pytest.mark.parametrize(
    ("sub", "claims", "good"),
    [
        pytest.param("ann", ANN, True, id="as it should be"),
        pytest.param("mallory", ANN, False, id="changed after it was signed"),
        pytest.param("trudy", ANN, False, id="signed with another key"),
        pytest.param("late", {**ANN, "exp": 1_700_000_000}, False, id="expired"),
        pytest.param("misled", {**ANN, "aud": ["another-page"]}, False, id="made for another page"),
        pytest.param("strayed", {**ANN, "iss": "https://elsewhere.test"}, False, id="of another provider"),
        pytest.param("again", {**ANN, "nonce": "of-yesterday"}, False, id="used before"),
    ],
)
def test_only_a_valid_token_gives_a_cookie(house: House, sub: str, claims: dict[str, object], good: bool) -> None:  # noqa: FBT001
    """For any other one, the log has one line with the reason."""
    house.provider.say(sub, **claims)
    reported = len(house.log.read_text())
    with requests.Session() as session:
        asked = session.get(f"{house.url}/auth/login?provider={provider_token(house.secrets[1])}", timeout=10)
        granted = session.post(asked.url, data={"sub": sub}, allow_redirects=False, timeout=10)
        back = session.get(granted.headers["location"], allow_redirects=False, timeout=10)
    said = house.log.read_text()[reported:].splitlines()

    assert 302 == back.status_code
    assert f"{BASE}/" == back.headers["location"]
    assert good == ("_streamlit_user" in session.cookies)
    assert [True] * (not good) == ["OAuth token exchange failed for provider 'default'" in line for line in said]
