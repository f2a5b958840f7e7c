"""The list of findings, one line each: choose one with a click; filters are query parameters of the address."""

from collections.abc import Mapping, Sequence

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.reports import FindingReport, flat_reports
from dashboard.data.model import BacklogTrend
from dashboard.format import readable
from dashboard.format.escape import literal, shortened, visible
from dashboard.frames import finding_rows
from dashboard.frames.finding_rows import FindingRow, FoldedRows, RowFilter
from dashboard.ui import elements, layout

_FILTERS = (("severity", "severities"), ("kind", "kinds"), ("in_vhost", "vhosts"))
# Fewer rows need no filter.
_FILTER_FROM = 5
_HEADER = (
    '<div class="finding-header" aria-hidden="true">'
    "<span>Severity</span><span>What</span><span>Who</span><span>Since</span><span>Growth</span><span>Explains</span></div>"
)
# Rows that are drawn at every refresh; all further ones are behind a toggle.
_FIRST_ROWS = 60
# A thousand findings are filtered, or read from the API.
_MOST_ROWS = 300

_OPENED = "opened-rules"
"""Groups of one rule that the reader has unfolded."""

LONGEST_SUBJECT = 44
"""Characters of a subject that fit in the two lines of its cell."""


def render(
    findings: Sequence[FindingReport],
    by_address: Mapping[str, FindingReport],
    chosen: str | None,
    trends: Sequence[BacklogTrend],
    now: float,
) -> None:
    """The filters and the rows.

    Args:
        findings: findings that are no consequences, ranked.
        by_address: all of them by their address.
        chosen: address of the chosen finding.
        trends: backlogs of their queues.
        now: the exporter's clock, seconds since 1970.
    """
    wanted = _filter(findings)
    opened = st.session_state.setdefault(_OPENED, set())
    shown = finding_rows.folded(finding_rows.rows(by_address, findings, chosen, wanted), chosen, opened)
    backlogs = {(it.vhost, it.name): it for it in trends}
    # The vhost is only named if it distinguishes.
    several = len({it.subject.vhost for it in flat_reports(findings)} - {None}) > 1
    if not shown:
        st.caption(f"No finding matches. {fmt.plural(len(findings), 'finding')} without the filter.")
    if shown:
        st.html(_HEADER)
    # Read once: it is a query parameter, and rows are many.
    zone = layout.current_zone()
    rest = sum(isinstance(row, FindingRow) for row in shown[_FIRST_ROWS:])
    with st.container(key="finding-rows", gap=None):
        every = rest > 0 and st.session_state.get("all-findings", False)
        for row in shown[: _MOST_ROWS if every else _FIRST_ROWS]:
            if isinstance(row, FoldedRows):
                _fold(row)
                continue
            st.button(
                _label(row, backlogs, now, several=several),
                key=f"row-{row.address}",
                type="secondary" if row.address == chosen else "tertiary",
                help=f"{literal(row.finding.rule)} {literal(str(row.finding.subject))} "
                f"{literal(readable.since(row.finding.since, now, zone))}",
                on_click=_choose,
                args=(row.address,),
                width="stretch",
            )
    if rest > 0:
        st.toggle(f"Show {fmt.plural(rest, 'more finding')}", key="all-findings")
    if every and len(shown) > _MOST_ROWS:
        st.caption(f"{len(shown) - _MOST_ROWS} more: choose a filter, or read /api/v1/findings.")


def _fold(row: FoldedRows) -> None:
    """A line that shows more findings of a rule, or fewer."""
    style = elements.SEVERITIES[row.first.severity]
    colour, word = ("gray", "muted") if row.first.muted else (style.colour, style.word.lower())
    icon, change = ("unfold_less", "fewer") if row.open else ("unfold_more", f"{row.number} more")
    st.button(
        f":{colour}[:material/{icon}: {word}] **{literal(f'{change} {row.first.rule}')}**",
        key=f"fold-{row.fold}",
        type="tertiary",
        on_click=st.session_state[_OPENED].symmetric_difference_update,
        args=({row.fold},),
        width="stretch",
    )


def _choose(address: str) -> None:
    layout.set_param("finding", address)


def _filter(findings: Sequence[FindingReport]) -> RowFilter:
    if len(findings) < _FILTER_FROM:
        return RowFilter()
    everything = flat_reports(findings)
    severities = {it.severity for it in everything}
    values = {
        "severity": [it.value for it in Severity if it in severities],
        "kind": sorted({it.subject.kind for it in everything}),
        "in_vhost": sorted({it.subject.vhost for it in everything if it.subject.vhost is not None}),
    }
    chosen = {}
    with st.container(horizontal=True, gap="small", key="finding-filters"):
        for name, what in _FILTERS:
            options = ["", *values[name]]

            def words(value: str, what: str = what) -> str:
                return visible(value) or f"All {what}"

            chosen[name] = layout.select(
                st.container(), what.capitalize(), options, name, f"filter-{name}", words=words, hidden=True
            )
    return RowFilter(severity=chosen["severity"], kind=chosen["kind"], vhost=chosen["in_vhost"])


def _label(row: FindingRow, backlogs: Mapping[tuple[str, str], BacklogTrend], now: float, *, several: bool) -> str:
    """Six cells: the style sheet aligns the parts of a button's label in columns. An empty cell is a dash."""
    finding = row.finding
    style = elements.SEVERITIES[finding.severity]
    severity = f":{style.colour}[{style.icon} {style.word.lower()}]"
    if finding.muted:
        severity = ":gray[:material/notifications_off: muted]"
    vhost = finding.subject.vhost
    subject = finding.subject.name if vhost is None or not several else f"{finding.subject.name} ({vhost})"
    cells = (
        f"↳ {finding.rule}" if row.under else finding.rule,
        shortened(subject, LONGEST_SUBJECT),
        finding_rows.age(finding, now),
        finding_rows.trend(finding.subject, backlogs),
        _notes(finding),
    )
    # Strong, so that a cell is one element: literal text may be several.
    return " ".join((severity, *(f"**{literal(cell or fmt.ABSENT)}**" for cell in cells)))


def _notes(finding: FindingReport) -> str:
    """Number of consequences, and who has seen it."""
    joined = len(flat_reports(finding.consequences))
    said = finding.triage
    who = "" if said is None else said.owner or ("seen" if said.acknowledged_at else "")
    return " ".join(filter(None, (f"+{joined}" if joined else "", who)))
