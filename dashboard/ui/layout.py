"""What every page has: the way to the others, the cluster, the range, and an address that shows the same view again."""

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

_PAGES, _HERE = "pages", "here"
_STYLE = Path(__file__).with_name("style.css")


@dataclass(frozen=True, slots=True)
class PageContext:
    """Where a page is.

    Attributes:
        cluster: the one that is shown; None while none is known.
        names: all clusters, in the exporter's order.
        zone: in which times are told.
    """

    settings: PageSettings
    cluster: str | None
    names: tuple[str, ...]
    zone: Zone = timezones.UTC


@dataclass(frozen=True, slots=True)
class DashboardPage:
    """One page.

    Attributes:
        path: in the address; "" is the first page.
        meaning: what it answers, for the way there.
        render: lays it out.
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
    shown = [
        st.Page(_shower(page, settings), title=page.title, url_path=page.path, default=not page.path) for page in pages
    ]
    chosen = st.navigation(shown, position="top")
    st.session_state[_PAGES] = dict(zip((page.path for page in pages), shown, strict=True))
    st.session_state[_HERE] = chosen.url_path or "now"
    chosen.run()


def _shower(page: DashboardPage, settings: PageSettings) -> Callable[[], None]:
    def show() -> None:
        live = cache.live(settings.exporter)
        names = clusters(settings, live)
        with st.container(horizontal=True, gap="small", key="page-choices"):
            cluster = _choose_cluster(names, live)
            _choose_zone()
        page.render(PageContext(settings, cluster, names, zone()))

    show.__name__ = page.path or "now"
    return show


def link(path: str, label: str, **query: str) -> None:
    """A way to another page, to the view that the query tells; nothing where there is no such page."""
    page = st.session_state.get(_PAGES, {}).get(path)
    if page is not None:
        kept = {name: value for name in ("cluster", "range", "tz") if (value := st.query_params.get(name)) is not None}
        st.page_link(page, label=label, query_params={**kept, **query}, icon=":material/arrow_forward:")


def here() -> str:
    """The page that is shown, as a word for the name of a file."""
    return str(st.session_state.get(_HERE, "page"))


def zone() -> Zone:
    """The zone in which times are told: that of the address (`?tz=`), UTC by default."""
    return timezones.chosen(wanted("tz"), st.context.timezone)


def clusters(settings: PageSettings, live: ExporterState) -> tuple[str, ...]:
    """What the exporter knows; while it was never reached, what has history."""
    return live.clusters or cache.rollup_clusters(settings.rollups)


def wanted(name: str) -> str | None:
    """What the address says, or what was chosen on a page before this one; it is in the address then."""
    value: str | None = st.query_params.get(name)
    kept: str | None = st.session_state.get(f"kept-{name}")
    if value is None and kept is not None:
        st.query_params[name] = kept
    return value or kept


def keep(name: str, value: str | None) -> None:
    """Put a choice into the address, and take it along to other pages; None forgets it."""
    st.session_state[f"kept-{name}"] = value
    if value is None:
        if name in st.query_params:
            del st.query_params[name]
    else:
        st.query_params[name] = value


def choose(
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
    """One of some options, which stays in the address.

    Args:
        within: where the box stands.
        label: what is chosen.
        options: as they stand in the address.
        name: of the parameter in the address.
        key: of the box, unique on the page.
        first: what is chosen where the address says none of the options; the first of them where it is None.
        words: how an option reads.
        hidden: the label is for screen readers only.
    """
    asked = wanted(name)
    chosen: str = within.selectbox(
        label,
        options,
        index=options.index(asked if asked in options else options[0] if first is None else first),
        format_func=words,
        key=key,
        on_change=lambda: keep(name, st.session_state[key]),
        label_visibility="collapsed" if hidden else "visible",
    )
    return chosen


def find(within: DeltaGenerator, key: str, hint: str) -> str:
    """Words to find something by (`?find=`); "" where there are none."""
    text: str = within.text_input(
        "Find",
        value=wanted("find") or "",
        key=key,
        placeholder=hint,
        on_change=lambda: keep("find", st.session_state[key] or None),
    )
    return text


def moment(within: DeltaGenerator, label: str, name: str, key: str, now: datetime) -> datetime:
    """A minute in UTC, which stays in the address; `now` where that tells none, and never later.

    The box shows it in the zone of the page, and its label says so.
    """
    told, shown_in = readable.parse_iso(wanted(name)), zone()
    asked = now if told is None else datetime.fromtimestamp(min(told, now.timestamp()), UTC)
    # A box keeps what it shows: in another zone it is another box.
    key = key if shown_in == timezones.UTC else f"{key}-{shown_in.name}"

    def stay() -> None:
        chosen = st.session_state[key]
        keep(name, None if chosen is None else f"{shown_in.instant(chosen):%Y-%m-%dT%H:%M}")

    shown = shown_in.at(asked).replace(tzinfo=None, second=0, microsecond=0, fold=0)
    chosen = within.datetime_input(
        f"{label} ({shown_in.name})",
        value=shown,
        max_value=now.replace(tzinfo=None) + timedelta(days=1),
        step=60,
        key=key,
        on_change=stay,
    )
    # What clocks show twice is told apart by the address alone: the box is asked only where it was changed.
    instant = asked.replace(second=0, microsecond=0) if chosen == shown else shown_in.instant(chosen)
    return min(instant, now)


def _choose_zone() -> None:
    """UTC, or the zone of the reader's browser; nothing where both are the same."""
    asked, own = wanted("tz"), timezones.find(st.context.timezone)
    options = {"utc": "Times: UTC"}
    if own is not None and own != timezones.UTC:
        options[timezones.LOCAL] = f"Times: {own.name}"
    named = timezones.find(asked)
    if asked is not None and named not in {None, timezones.UTC, own}:
        options[asked] = f"Times: {asked}"
    if len(options) > 1:
        first = timezones.LOCAL if timezones.LOCAL in options and named == own else "utc"
        within, words = st.container(width=230), options.__getitem__
        choose(within, "Times", list(options), "tz", "zone-choice", first=first, words=words, hidden=True)


def _choose_cluster(names: tuple[str, ...], live: ExporterState) -> str | None:
    """The cluster of the address (`?cluster=`), else the one that is worst off."""
    if not names:
        return None
    asked = wanted("cluster")
    start = asked if asked in names else _worst(names, live)
    if len(names) == 1:
        if asked is not None and asked != start:
            st.warning("The cluster in this page's address is not known; the only one is shown.")
        return start
    chosen = st.selectbox(
        "Cluster",
        names,
        index=names.index(start),
        key="cluster-choice",
        on_change=lambda: keep("cluster", st.session_state["cluster-choice"]),
        label_visibility="collapsed",
        width=320,
    )
    if asked is not None and asked not in names:
        st.warning("The cluster in this page's address is not known; the one that is worst off is shown.")
    return chosen


def _worst(names: tuple[str, ...], live: ExporterState) -> str:
    order = list(Severity)
    ranks = {
        item.cluster: min((order.index(finding.severity) for finding in item.findings), default=len(order))
        for item in (live.findings.answer.clusters if live.findings.answer else ())
    }
    return min(names, key=lambda name: ranks.get(name, len(order)))


def choose_range(title: str) -> minute_frames.Range:
    """A heading with the range of the address (`?range=`), an hour by default."""
    heading, choice = st.columns([4, 1], vertical_alignment="bottom")
    heading.subheader(title, anchor=False)

    def words(key: str) -> str:
        return f"Last {minute_frames.RANGES[key].label}"

    keys = list(minute_frames.RANGES)
    return minute_frames.RANGES[
        choose(choice, "Range", keys, "range", "range-choice", first="1h", words=words, hidden=True)
    ]
