"""Entry point of every page: people without access see the sign-in page, and no data is read for them."""

from collections.abc import Callable, Sequence

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.log import get_logger
from dashboard.auth import person
from dashboard.auth.access_rules import AccessDecision, AccessRules, Claims, display_name, verified_email
from dashboard.format.escape import literal, visible
from dashboard.frame import page_frame
from dashboard.settings import PageSettings
from dashboard.ui.layout import DashboardPage

_LOG = get_logger(__name__)

_CHECK_SECONDS = 10.0


def run(pages: Sequence[DashboardPage]) -> None:
    """Show the page of the address to people with access; without a login, to everybody."""
    settings = PageSettings.from_environ()
    if settings.login_header is not None:
        _run_behind_proxy(pages, settings)
    elif settings.login is not None:
        _run_with_login(pages, settings.login)
    else:
        page_frame.run(pages)


def _run_behind_proxy(pages: Sequence[DashboardPage], settings: PageSettings) -> None:
    name = person.name(settings)
    if name is None:
        _closed(pages, lambda: _bypassed(settings.login_header))
        return
    page_frame.run(pages)
    with _footer():
        st.caption(f"Signed in as {literal(name)}", width="content")


def _run_with_login(pages: Sequence[DashboardPage], rules: AccessRules) -> None:
    claims = st.user.to_dict()
    decision = rules.check(claims, SystemClock().now().wall)
    if decision is not AccessDecision.ADMITTED:
        _closed(pages, _sign_in(rules, claims, decision))
        return
    page_frame.run(pages)
    with _footer():
        st.caption(f"Signed in as {literal(display_name(claims))}", width="content")
        _sign_out_button()
    _end_session(rules, claims)


def _closed(pages: Sequence[DashboardPage], show: Callable[[], None]) -> None:
    """Show this instead of every page: each address has it, so that the address is unchanged after signing in."""
    st.set_page_config(page_title="Sign in", page_icon="🐇")
    closed = [st.Page(show, title="Sign in", url_path=page.path, default=not page.path) for page in pages]
    st.navigation(closed, position="hidden").run()


@st.fragment(run_every=_CHECK_SECONDS)
def _end_session(rules: AccessRules, claims: Claims) -> None:
    """Replace an open page by the sign-in page when the session expires; a page may refresh itself for days."""
    if rules.check(claims, SystemClock().now().wall) is not AccessDecision.ADMITTED:
        st.rerun(scope="app")


def _bypassed(header: str | None) -> None:
    st.header("ackscope", anchor=False)
    st.text(f"This request did not come through the sign-in proxy (no {header}). Open the address of the proxy.")


def _sign_in(rules: AccessRules, claims: Claims, decision: AccessDecision) -> Callable[[], None]:
    def show() -> None:
        if decision is AccessDecision.REFUSED:
            _access_denied(rules, claims)
            return
        st.header("ackscope", anchor=False)
        if decision is AccessDecision.EXPIRED:
            st.text(f"Your session has expired after {rules.session / 3600:g} h. Sign in again.")
        else:
            st.text("Restricted to broker operators.")
        if st.button("Sign in", type="primary", key="sign-in"):
            st.login()

    return show


def _access_denied(rules: AccessRules, claims: Claims) -> None:
    st.header("ackscope", anchor=False)
    name = display_name(claims)
    by_address = rules.emails or rules.domains
    unverified = "email" in claims and verified_email(claims) is None
    why = ": the provider does not confirm that this e-mail address is verified" if unverified and by_address else ""
    st.text(f"{visible(name)} has no access to this dashboard{why}. Ask the administrator for access.")
    if not st.session_state.get("refusal-logged"):
        st.session_state["refusal-logged"] = True
        _LOG.warning("access denied: --login lists neither the address nor a claim", user=name)
    _sign_out_button()


def _footer() -> "st.delta_generator.DeltaGenerator":
    return st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center")


def _sign_out_button() -> None:
    if st.button("Sign out", key="sign-out", type="tertiary"):
        st.logout()
