"""The one way to the pages: whoever is not let in sees a door, and nothing is read for them."""

import logging
from collections.abc import Callable, Sequence

import streamlit as st

from ackscope.clock import SystemClock
from dashboard.auth.access_rules import FAILED, AccessDecision, AccessRules, Claims, called, verified_email
from dashboard.format.escape import literal, visible
from dashboard.settings import PageSettings
from dashboard.ui import layout

_LOG = logging.getLogger(__name__)


def run(pages: Sequence[layout.DashboardPage]) -> None:
    """Show the page of the address to those who may see it; without a login, to everybody."""
    rules = PageSettings.from_environ().login
    if rules is None:
        layout.run(pages)
        return
    claims = st.user.to_dict()
    verdict = rules.judge(claims, SystemClock().now().wall)
    if verdict is AccessDecision.ADMITTED:
        layout.run(pages)
        _foot(claims)
        return
    st.set_page_config(page_title="Sign in", page_icon="🐇")
    doors = [
        st.Page(_door(rules, claims, verdict), title="Sign in", url_path=page.path, default=not page.path)
        for page in pages
    ]
    # Every address has its door, so that it is still the same address afterwards.
    st.navigation(doors, position="hidden").run()


def _door(rules: AccessRules, claims: Claims, verdict: AccessDecision) -> Callable[[], None]:
    def show() -> None:
        if verdict is AccessDecision.REFUSED:
            _refuse(rules, claims)
            return
        st.header("ackscope", anchor=False)
        if verdict is AccessDecision.OVER:
            st.text(f"You signed in more than {rules.session / 3600:g} h ago; please do so again.")
        elif st.query_params.get(FAILED[0]) == FAILED[1]:
            st.text("That did not succeed; try again, or ask whoever keeps this page: its log says why.")
        else:
            st.text("This page is for those who look after the brokers.")
        if st.button("Sign in", type="primary", key="sign-in"):
            st.login()

    return show


def _refuse(rules: AccessRules, claims: Claims) -> None:
    st.header("ackscope", anchor=False)
    who = called(claims)
    by_address = rules.emails or rules.domains
    why = ", as your provider does not say that this e-mail address is verified" if _unverified(claims) else ""
    st.text(f"{visible(who)} may not see this page{why if by_address else ''}; ask whoever keeps it to let you in.")
    if not st.session_state.get("told-refused"):
        st.session_state["told-refused"] = True
        _LOG.warning("not let in: %r signed in, and --login lists neither address nor claims", who)
    _out("Sign out")


def _unverified(claims: Claims) -> bool:
    return "email" in claims and verified_email(claims) is None


def _foot(claims: Claims) -> None:
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        st.caption(f"Signed in as {literal(called(claims))}", width="content")
        _out("Sign out")


def _out(label: str) -> None:
    if st.button(label, key="sign-out", type="tertiary"):
        st.logout()
