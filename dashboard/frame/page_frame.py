"""Draws the frame and in it the page of the address; choices are query parameters that all pages share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

import ackscope
from ackscope.clock import SystemClock
from dashboard.format import timezones
from dashboard.frame import cluster_choice, health_light, range_choice, search
from dashboard.settings import PageSettings
from dashboard.ui import cache, layout
from dashboard.ui.layout import DashboardPage, PageContext

_STYLE = Path(layout.__file__).with_name("style.css")
_NAME = Path(__file__).with_name("name.svg")
_ABOUT = (
    f"**ackscope {ackscope.__version__}** tells what is wrong with a RabbitMQ cluster, where, why, and what to do next."
)


def run(pages: Sequence[DashboardPage]) -> None:
    """Show the page of the address."""
    # Streamlit's menu has the choice of the theme; it is shown only if there is an entry in it.
    st.set_page_config(page_icon="🐇", layout="wide", menu_items={"About": _ABOUT})
    st.html(_STYLE)
    st.logo(str(_NAME), size="large")
    settings = PageSettings.from_environ()
    entries = {
        page.path: st.Page(_wrap(page, settings), title=page.title, url_path=page.path, default=not page.path)
        for page in pages
    }
    selected = st.navigation(list(entries.values()), position="top")
    layout.remember_pages(entries, selected.url_path or "now")
    selected.run()


def _wrap(page: DashboardPage, settings: PageSettings) -> Callable[[], None]:
    def show() -> None:
        layout.remember_shared()
        state, now = cache.exporter_state(settings.exporter), SystemClock().now()
        clusters = layout.known_clusters(settings, state)
        zone, span = layout.current_zone(), layout.current_range(now.utc)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="frame"):
            cluster, problem = cluster_choice.render(clusters, state, now)
            context = PageContext(settings, cluster, clusters, zone, span)
            range_choice.render(span, zone, now.utc)
            _select_zone()
            search.render(context)
            health_light.render(context)
        if problem:
            st.warning(problem)
        if page.headed:
            layout.page_heading(page.title, page.meaning)
        page.render(context)

    show.__name__ = page.path or "now"
    return show


def _select_zone() -> None:
    """A choice between UTC and the zone of the browser; only UTC is shown as text if both are the same."""
    parameter, own = layout.get_param("tz"), timezones.find(st.context.timezone)
    options = {"utc": "UTC"}
    if own is not None and own != timezones.UTC:
        options[timezones.LOCAL] = own.name
    named = timezones.find(parameter)
    if parameter is not None and named not in {None, timezones.UTC, own}:
        options[parameter] = parameter
    if len(options) > 1:
        first = timezones.LOCAL if timezones.LOCAL in options and named == own else "utc"
        within, words = st.container(width=160), options.__getitem__
        layout.select(within, "Time zone", list(options), "tz", "zone-choice", first=first, words=words, hidden=True)
