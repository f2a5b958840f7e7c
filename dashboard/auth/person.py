"""The person in front of the page: as the sign-in provider or an authenticating proxy names them."""

import streamlit as st

from dashboard.auth.access_rules import display_name
from dashboard.settings import PageSettings


def name(settings: PageSettings) -> str | None:
    """The name of the person; None if nobody signed in, or if the dashboard has no login."""
    if settings.login_header is not None:
        return (st.context.headers.get(settings.login_header) or "").strip() or None
    if settings.login is not None:
        claims = st.user.to_dict()
        return display_name(claims) if claims.get("is_logged_in") is True else None
    return None
