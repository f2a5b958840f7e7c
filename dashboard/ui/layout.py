"""Layout of every page: navigation, cluster, time zone and range; choices are query parameters of the address."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ackscope.findings import Severity
from dashboard.data.model import ExporterState
from dashboard.format import readable, timezones
from dashboard.format.timezones import Zone
from dashboard.frames import minute_frames
from dashboard.settings import PageSettings
from dashboard.ui import cache

_PAGES, _CURRENT = "pages", "current-page"
_STYLE = Path(__file__).with_name("style.css")


@dataclass(frozen=True, slots=True)
class PageContext:
    """The input of a page.

    Attributes:
        cluster: the selected cluster; None while none is known.
        clusters: all clusters, in the exporter's order.
        zone: time zone of all times on the page.
    """

    settings: PageSettings
    cluster: str | None
    clusters: tuple[str, ...]
    zone: Zone = timezones.UTC


@dataclass(frozen=True, slots=True)
class DashboardPage:
    """A page of the dashboard.

    Attributes:
        path: path in the address; "" is the first page.
        meaning: what the page answers.
        render: draws the page.
    """

    title: str
    path: str
    meaning: str
    render: Callable[[PageContext], None]


def run(pages: Sequence[DashboardPage]) -> None:
    """Show the page of the address."""
    st.set_page_config(page_icon="🐇", layout="wide")
    st.html(_STYLE)
    settings = PageSettings.from_environ()
    entries = [
        st.Page(_wrap(page, settings), title=page.title, url_path=page.path, default=not page.path) for page in pages
    ]
    selected = st.navigation(entries, position="top")
    st.session_state[_PAGES] = dict(zip((page.path for page in pages), entries, strict=True))
    st.session_state[_CURRENT] = selected.url_path or "now"
    selected.run()


def _wrap(page: DashboardPage, settings: PageSettings) -> Callable[[], None]:
    def show() -> None:
        state = cache.exporter_state(settings.exporter)
        clusters = known_clusters(settings, state)
        with st.container(horizontal=True, gap="small", key="page-choices"):
            cluster = _select_cluster(clusters, state)
            _select_zone()
        page.render(PageContext(settings, cluster, clusters, current_zone()))

    show.__name__ = page.path or "now"
    return show


def link(path: str, label: str, **query: str) -> None:
    """A link to another page with these query parameters; nothing if that page does not exist."""
    page = st.session_state.get(_PAGES, {}).get(path)
    if page is not None:
        common = {
            name: value for name in ("cluster", "range", "tz") if (value := st.query_params.get(name)) is not None
        }
        st.page_link(page, label=label, query_params={**common, **query}, icon=":material/arrow_forward:")


def current_page() -> str:
    """Name of the current page, for file names."""
    return str(st.session_state.get(_CURRENT, "page"))


def current_zone() -> Zone:
    """The time zone of the page: that of the address (`?tz=`), or else UTC."""
    return timezones.selected(get_param("tz"), st.context.timezone)


def known_clusters(settings: PageSettings, state: ExporterState) -> tuple[str, ...]:
    """Clusters of the exporter; if it was never reached, the clusters that have history."""
    return state.clusters or cache.rollup_clusters(settings.rollups)


def get_param(name: str) -> str | None:
    """A query parameter of the address, or else the choice made on an earlier page, which is added to the address."""
    value: str | None = st.query_params.get(name)
    earlier: str | None = st.session_state.get(f"param-{name}")
    if value is None and earlier is not None:
        st.query_params[name] = earlier
    return value or earlier


def set_param(name: str, value: str | None) -> None:
    """Set a query parameter of the address, on this and the following pages; None removes it."""
    st.session_state[f"param-{name}"] = value
    if value is None:
        if name in st.query_params:
            del st.query_params[name]
    else:
        st.query_params[name] = value


def select(
    within: DeltaGenerator,
    label: str,
    options: Sequence[str],
    name: str,
    key: str,
    *,
    first: str | None = None,
    words: Callable[[str], str] = str,
    hidden: bool = False,
) -> str:
    """A select box whose value is a query parameter.

    Args:
        within: container of the box.
        label: label of the box.
        options: values of the query parameter.
        name: name of the query parameter.
        key: key of the box, unique on the page.
        first: default if the address has no valid value; None: the first option.
        words: label of an option.
        hidden: show the label to screen readers only.
    """
    current = get_param(name)
    selected: str = within.selectbox(
        label,
        options,
        index=options.index(current if current in options else options[0] if first is None else first),
        format_func=words,
        key=key,
        on_change=lambda: set_param(name, st.session_state[key]),
        label_visibility="collapsed" if hidden else "visible",
    )
    return selected


def search_box(within: DeltaGenerator, key: str, hint: str) -> str:
    """A search box whose text is the query parameter `find`; "" if it is empty."""
    text: str = within.text_input(
        "Find",
        value=get_param("find") or "",
        key=key,
        placeholder=hint,
        on_change=lambda: set_param("find", st.session_state[key] or None),
    )
    return text


def time_input(within: DeltaGenerator, label: str, name: str, key: str, now: datetime) -> datetime:
    """An input for a minute, stored in UTC as a query parameter; `now` is the default and the maximum.

    The box shows the minute in the zone of the page, which its label names.
    """
    parameter, zone = readable.parse_iso(get_param(name)), current_zone()
    current = now if parameter is None else datetime.fromtimestamp(min(parameter, now.timestamp()), UTC)
    # The browser keeps the text of a box, so each zone needs a box of its own.
    key = key if zone == timezones.UTC else f"{key}-{zone.name}"

    def store() -> None:
        value = st.session_state[key]
        set_param(name, None if value is None else f"{zone.to_utc(value):%Y-%m-%dT%H:%M}")

    shown = zone.local(current).replace(tzinfo=None, second=0, microsecond=0, fold=0)
    value = within.datetime_input(
        f"{label} ({zone.name})",
        value=shown,
        max_value=now.replace(tzinfo=None) + timedelta(days=1),
        step=60,
        key=key,
        on_change=store,
    )
    # Use the box only if it was changed: in a repeated hour, only the address tells which occurrence is meant.
    instant = current.replace(second=0, microsecond=0) if value == shown else zone.to_utc(value)
    return min(instant, now)


def _select_zone() -> None:
    """A choice between UTC and the zone of the browser; nothing if both are the same."""
    parameter, own = get_param("tz"), timezones.find(st.context.timezone)
    options = {"utc": "Times: UTC"}
    if own is not None and own != timezones.UTC:
        options[timezones.LOCAL] = f"Times: {own.name}"
    named = timezones.find(parameter)
    if parameter is not None and named not in {None, timezones.UTC, own}:
        options[parameter] = f"Times: {parameter}"
    if len(options) > 1:
        first = timezones.LOCAL if timezones.LOCAL in options and named == own else "utc"
        within, words = st.container(width=230), options.__getitem__
        select(within, "Times", list(options), "tz", "zone-choice", first=first, words=words, hidden=True)


def _select_cluster(names: tuple[str, ...], state: ExporterState) -> str | None:
    """The cluster of the address (`?cluster=`), or else the one with the most severe findings."""
    if not names:
        return None
    parameter = get_param("cluster")
    start = parameter if parameter in names else _most_severe(names, state)
    if len(names) == 1:
        if parameter is not None and parameter != start:
            st.warning("Unknown cluster in the address. Showing the only cluster.")
        return start
    selected = st.selectbox(
        "Cluster",
        names,
        index=names.index(start),
        key="cluster-choice",
        on_change=lambda: set_param("cluster", st.session_state["cluster-choice"]),
        label_visibility="collapsed",
        width=320,
    )
    if parameter is not None and parameter not in names:
        st.warning("Unknown cluster in the address. Showing the cluster with the most severe findings.")
    return selected


def _most_severe(names: tuple[str, ...], state: ExporterState) -> str:
    order = list(Severity)
    ranks = {
        item.cluster: min((order.index(finding.severity) for finding in item.findings), default=len(order))
        for item in (state.findings.response.clusters if state.findings.response else ())
    }
    return min(names, key=lambda name: ranks.get(name, len(order)))


def range_heading(title: str) -> minute_frames.Range:
    """A heading with a select box for the time range (`?range=`), 1 hour by default."""
    heading, choice = st.columns([4, 1], vertical_alignment="bottom")
    heading.subheader(title, anchor=False)

    def words(key: str) -> str:
        return f"Last {minute_frames.RANGES[key].label}"

    key = select(
        choice,
        "Range",
        list(minute_frames.RANGES),
        "range",
        "range-choice",
        first="1h",
        words=words,
        hidden=True,
    )
    return minute_frames.RANGES[key]
