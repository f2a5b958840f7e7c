"""What pages share: links, and choices that are query parameters of the address, such as cluster and time range."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import sleep

import streamlit as st
from streamlit import Page
from streamlit.delta_generator import DeltaGenerator

from ackscope.clock import SystemClock
from dashboard.data.model import ExporterState
from dashboard.format import readable, timezones
from dashboard.format.timezones import Zone
from dashboard.frames import confirm_frames
from dashboard.frames.minute_frames import MAX_RANGE, RANGES, Range
from dashboard.settings import PageSettings
from dashboard.ui import cache

_PAGES, _CURRENT = "pages", "current-page"
_SHARED_TOGETHER = (("cluster",), ("tz",), ("range", "from", "to"))
"""Query parameters of every page, which links and the navigation carry to other pages; each group as a whole."""
DEFAULT_RANGE = "1h"
DRAWING_SECONDS = 1.0
"""A browser on two busy cores draws a hundred findings in about this time."""
_DRAWN = "first-part-drawn"


@dataclass(frozen=True, slots=True)
class PageContext:
    """The input of a page.

    Attributes:
        cluster: the selected cluster; None while none is known.
        clusters: all clusters, in the exporter's order.
        zone: time zone of all times on the page.
        span: time range of all charts on the page.
    """

    settings: PageSettings
    cluster: str | None
    clusters: tuple[str, ...]
    zone: Zone = timezones.UTC
    span: Range = RANGES[DEFAULT_RANGE]


@dataclass(frozen=True, slots=True)
class DashboardPage:
    """A page of the dashboard.

    Attributes:
        path: path in the address; "" is the first page.
        meaning: what the page is for, in one line.
        render: draws the page.
        headed: False if the page draws its own heading, with `page_heading`.
    """

    title: str
    path: str
    meaning: str
    render: Callable[[PageContext], None]
    headed: bool = True


def remember_pages(pages: Mapping[str, Page], current: str) -> None:
    """Store the pages by path, for `link`, and the name of the current one."""
    st.session_state[_PAGES], st.session_state[_CURRENT] = pages, current


def page_heading(title: str, meaning: str) -> None:
    """The heading of a page (no foreign text), and in one line what the page is for."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="page-heading"):
        st.title(title, anchor=False, width="content")
        st.caption(meaning, width="content")


def let_browser_draw() -> None:
    """Pause once a session, so that the browser draws what it has received before the rest of the page arrives.

    It draws each message before the elements whose code it still has to load. So without the pause, the list of
    findings is seen about two seconds later, after the last message (`bench.dashboard.speed`).
    """
    if not st.session_state.get(_DRAWN):
        st.session_state[_DRAWN] = True
        sleep(DRAWING_SECONDS)


def link(path: str, label: str, *, icon: str = ":material/arrow_forward:", **query: str) -> None:
    """A link to another page with these query parameters; nothing if that page does not exist."""
    page = st.session_state.get(_PAGES, {}).get(path)
    if page is not None:
        st.page_link(page, label=label, query_params={**_shared(), **query}, icon=icon)


def open_page(path: str, **query: str) -> None:
    """Go to another page with these query parameters; nothing if that page does not exist."""
    page = st.session_state.get(_PAGES, {}).get(path)
    if page is not None:
        st.switch_page(page, query_params={**_shared(), **query})


def _shared() -> dict[str, str]:
    names = (name for group in _SHARED_TOGETHER for name in group)
    return {name: value for name in names if (value := st.query_params.get(name)) is not None}


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
    current = current if current in options else options[0] if first is None else first
    index = options.index(current)
    if st.session_state.get(key, current) != current:
        # A link or the browser's Back changed the address; Streamlit accepts either a state or an index.
        st.session_state[key], index = current, 0
    selected: str = within.selectbox(
        label,
        options,
        index=index,
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


def remember_shared() -> None:
    """Keep the shared choices of the address for the pages that follow; those it lacks are added from the last page."""
    _read_older_range()
    for names in _SHARED_TOGETHER:
        key = f"shared-{names[0]}"
        given = {name: value for name in names if (value := st.query_params.get(name)) is not None}
        if given:
            st.session_state[key] = given
        else:
            st.query_params.update(st.session_state.get(key, {}))


def _read_older_range() -> None:
    """Replace `?until=` and `&hours=`, which older links to the page "Timeline" have, by the shared time range."""
    until, hours = (st.query_params.pop(name, None) for name in ("until", "hours"))
    end = readable.parse_iso(until)
    if end is not None:
        length = RANGES.get(hours or "", RANGES["6h"]).minutes * 60
        set_fixed_range(datetime.fromtimestamp(end - length, UTC), datetime.fromtimestamp(end, UTC))
    elif hours in RANGES:
        set_live_range(hours)


def fixed_range(now: datetime) -> Range | None:
    """The fixed time range of the address (`?from=` and `&to=`, in UTC); None if it has none, or an invalid one.

    The range ends at `now` at the latest; one that is too long is truncated to its first days.
    """
    first, last = (readable.parse_iso(st.query_params.get(name)) for name in ("from", "to"))
    if first is None or last is None or not first < last or first >= now.timestamp() - 60:
        return None
    start = datetime.fromtimestamp(first, UTC)
    end = min(datetime.fromtimestamp(min(last, now.timestamp()), UTC), start + MAX_RANGE)
    return Range.between(*confirm_frames.widen(start, end))


def current_range(now: datetime | None = None) -> Range:
    """The time range of the page, which all its charts share: the fixed one of the address, or else a live one."""
    fixed = fixed_range(now or SystemClock().now().utc)
    return fixed or RANGES.get(st.query_params.get("range", ""), RANGES[DEFAULT_RANGE])


def set_fixed_range(start: datetime, end: datetime) -> None:
    """Set a fixed time range in the address."""
    for name, moment in (("from", start), ("to", end)):
        st.query_params[name] = f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"


def set_live_range(key: str | None = None) -> None:
    """Set a live time range in the address; None: the one before the fixed range."""
    for name in ("from", "to"):
        st.query_params.pop(name, None)
    if key is not None:
        st.query_params["range"] = key
    st.session_state.pop("shared-range", None)


def range_heading(title: str) -> Range:
    """A heading above charts; returns the time range of the page."""
    st.subheader(title, anchor=False)
    return current_range()
