"""Pages opened without access: no data is read, so that none can be shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from ackscope.clock import SystemClock
from dashboard.auth.access_rules import AccessRules
from dashboard.pages import PAGES
from dashboard.settings import PageSettings
from tests.dashboard.answers import Exporter
from tests.dashboard.conftest import APP
from tests.dashboard.page_text import errors, words

Knock = Callable[..., AppTest]
RULES = AccessRules(emails=("ann@example.org",), domains=(), claims={}, session=3600.0)
UNVERIFIED = ": the provider does not confirm that this e-mail address is verified"
AUTH = {"redirect_uri": "http://localhost/oauth2callback", "cookie_secret": "c" * 32}


def person(email: str, ago: float = 60.0, **claims: object) -> dict[str, Any]:
    """Claims of somebody who signed in `ago` seconds before the page is opened."""
    return {"is_logged_in": True, "ago": ago, "email": email, "email_verified": True, **claims}


@pytest.fixture
def knock(monkeypatch: pytest.MonkeyPatch, exporter: Exporter, rollups: Path) -> Knock:
    """Run the script once: `knock(claims, path)`; the page at `path` becomes the first page, which AppTest shows."""

    def run(
        claims: dict[str, Any], path: str = "", rules: AccessRules | None = RULES, header: str | None = None
    ) -> AppTest:
        settings = PageSettings(exporter.url, rollups, login=rules, login_header=header)
        for name, value in settings.to_environ().items():
            monkeypatch.setenv(name, value)
        st.cache_data.clear()
        st.cache_resource.clear()
        first = f"[replace(p, path='' if p.path == {path!r} else p.path or 'now') for p in PAGES]"
        script = "from dataclasses import replace\n" + APP.read_text().replace("(PAGES)", f"({first})")
        page = AppTest.from_string(script, default_timeout=60)
        page.secrets = {"auth": AUTH}
        reported = dict(claims)
        if "ago" in reported:
            reported["iat"] = SystemClock().now().wall - reported.pop("ago")
        page.user = reported
        return page.run()

    return run


@pytest.mark.parametrize(
    ("path", "claims"),
    [
        *(pytest.param(page.path, {}, id=f"{page.title}, nobody") for page in PAGES),
        pytest.param("queues", person("bob@example.org"), id="Queues, not listed"),
        pytest.param("queues", person("ann@example.org", ago=3601), id="Queues, session over"),
    ],
)
def test_no_page_is_shown_without_access(path: str, claims: dict[str, Any], knock: Knock, exporter: Exporter) -> None:
    """The exporter is not requested, and there is only one button."""
    page = knock(claims, path)

    assert [] == errors(page)
    assert [] == exporter.asked
    assert 1 == len(page.button)
    assert "shop" not in words(page)


@pytest.mark.parametrize("path", ["", "queues"])
def test_a_page_is_shown_with_access(path: str, knock: Knock, exporter: Exporter) -> None:
    """As without a login, with a button to sign out."""
    page = knock(person("ann@example.org"), path)

    assert [] == errors(page)
    assert "/api/v1/snapshot" in exporter.asked
    assert "Signed in as ` ann@example.org `" == page.caption[-1].value
    assert "Sign out" == page.button[-1].label


def test_without_a_login_everybody_has_access(knock: Knock, exporter: Exporter) -> None:
    """Nothing about signing in or out."""
    page = knock({}, rules=None)

    assert [] == errors(page)
    assert [] != exporter.asked
    assert "Signed in" not in words(page)


@pytest.mark.parametrize("path", [page.path for page in PAGES])
def test_a_request_that_bypasses_the_proxy_sees_nothing(path: str, knock: Knock, exporter: Exporter) -> None:
    """A request without the header: no data, no button."""
    page = knock(person("ann@example.org"), path, rules=None, header="X-Forwarded-Email")

    assert [] == errors(page)
    assert [] == exporter.asked
    assert 0 == len(page.button)
    assert [
        "This request did not come through the sign-in proxy (no X-Forwarded-Email). Open the address of the proxy."
    ] == [text.value for text in page.text]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({}, "Restricted to broker operators."),
        (person("ann@example.org", ago=3601), "Your session has expired after 1 h. Sign in again."),
        (
            person("bob@example.org"),
            "bob@example.org has no access to this dashboard. Ask the administrator for access.",
        ),
        (
            person("ann@example.org", email_verified=False),
            f"ann@example.org has no access to this dashboard{UNVERIFIED}. Ask the administrator for access.",
        ),
        (
            person("*b*\u202e <b>"),
            "*b*\\u202e <b> has no access to this dashboard. Ask the administrator for access.",
        ),
    ],
)
def test_the_sign_in_page_says_why(claims: dict[str, Any], said: str, knock: Knock) -> None:
    """As plain text, whatever the name contains."""
    page = knock(claims, "queues")

    assert [said] == [text.value for text in page.text]


@pytest.mark.parametrize("missing", ["_LOGIN", "_LOGIN_HEADER"])
def test_a_page_without_settings_stays_closed(
    missing: str, knock: Knock, monkeypatch: pytest.MonkeyPatch, exporter: Exporter
) -> None:
    """Started without the command: an error, not a page."""
    setting = monkeypatch.setenv

    def all_but_one(name: str, value: str) -> None:
        if not name.endswith(missing):
            setting(name, value)

    monkeypatch.setattr(monkeypatch, "setenv", all_but_one)
    page = knock({})

    assert 1 == len(errors(page))
    assert [] == exporter.asked
