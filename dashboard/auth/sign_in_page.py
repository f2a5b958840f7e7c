"""Entry point of every page: people without access see the sign-in page, and no data is read for them."""

from collections.abc import Callable, Sequence

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.log import get_logger
from dashboard.auth.access_rules import (
    SIGN_IN_FAILED,
    AccessDecision,
    AccessRules,
    Claims,
    display_name,
    verified_email,
)
from dashboard.format.escape import literal, visible
from dashboard.frame import page_frame
from dashboard.settings import PageSettings
from dashboard.ui.layout import DashboardPage

_LOG = get_logger(__name__)


def run(pages: Sequence[DashboardPage]) -> None:
    """Show the page of the address to people with access; without a login, to everybody."""
    rules = PageSettings.from_environ().login
    if rules is None:
        page_frame.run(pages)
        return
    claims = st.user.to_dict()
    decision = rules.check(claims, SystemClock().now().wall)
    if decision is AccessDecision.ADMITTED:
        page_frame.run(pages)
        _footer(claims)
        return
    st.set_page_config(page_title="Sign in", page_icon="🐇")
    # Every address has its sign-in page, so that the address is unchanged after signing in.
    sign_in = [
        st.Page(_sign_in(rules, claims, decision), title="Sign in", url_path=page.path, default=not page.path)
        for page in pages
    ]
    st.navigation(sign_in, position="hidden").run()


def _sign_in(rules: AccessRules, claims: Claims, decision: AccessDecision) -> Callable[[], None]:
    def show() -> None:
        if decision is AccessDecision.REFUSED:
            _access_denied(rules, claims)
            return
        st.header("ackscope", anchor=False)
        if decision is AccessDecision.EXPIRED:
            st.text(f"Your session has expired after {rules.session / 3600:g} h. Sign in again.")
        elif st.query_params.get(SIGN_IN_FAILED[0]) == SIGN_IN_FAILED[1]:
            st.text("Sign-in failed. Try again, or ask the administrator: the log of the dashboard has the reason.")
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


def _footer(claims: Claims) -> None:
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        st.caption(f"Signed in as {literal(display_name(claims))}", width="content")
        _sign_out_button()


def _sign_out_button() -> None:
    if st.button("Sign out", key="sign-out", type="tertiary"):
        st.logout()
