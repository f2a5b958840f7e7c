"""The headline of a cluster: what is wrong, and how old the underlying data is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from ackscope import format as fmt
from ackscope.clock import Instant
from ackscope.findings import Severity
from ackscope.reports import FindingReport, InconclusiveReport, flat_reports
from dashboard.data.model import ClusterFindings, ExporterState, Polled
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.frames import finding_rows
from dashboard.ui import elements, layout
from dashboard.ui.elements import BadgeStyle

# Inconclusive rules are named up to this number; more of them are only counted.
_MAX_INCONCLUSIVE_NAMED = 6
# With nothing else to read, what is not judged is the news.
_MAX_NAMED_ALONE = 24
# Seconds; the newest minute is at most 120 s old while probes and pipeline run.
_HISTORY_STALE_AFTER = 240


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline of a cluster.

    Attributes:
        text: contains no foreign text.
        sure: False if the data is stale or missing: then the cluster is never reported as healthy.
    """

    style: BadgeStyle
    text: str
    sure: bool


@dataclass(frozen=True, slots=True)
class DataAge:
    """Age of the data that the findings are based on.

    Attributes:
        age: age of the oldest broker data used, seconds; None without data.
        exporter_down: the exporter does not respond: the findings are its last ones.
        overdue: how late the next poll is, seconds; None if unknown.
    """

    age: float | None
    exporter_down: bool = False
    overdue: float | None = None

    @property
    def stale(self) -> bool:
        """Whether the data is too old to describe the present."""
        return self.age is not None and (self.exporter_down or readable.is_stale(self.age, self.overdue))


def data_age(found: ClusterFindings | None, polled: Polled[ClusterFindings], now: Instant) -> DataAge:
    """Age at `now` of the data that the findings of a cluster are based on."""
    down = polled.outage is not None
    if found is None:
        return DataAge(None, down)
    return DataAge(polled.age_at(found.age_seconds, now), down, polled.age_at(found.overdue_seconds, now))


def headline(found: ClusterFindings | None, data: DataAge) -> Headline:
    """The headline of one cluster, from its findings and the age of the data.

    Args:
        found: None if the exporter never responded, or does not know the cluster.
        data: age of the data.
    """
    age = data.age
    if found is None:
        missing = (
            "the exporter does not respond" if data.exporter_down else "the exporter does not monitor this cluster"
        )
        return Headline(elements.UNKNOWN, f"Unknown: {missing}", sure=False)
    prefix = f"{readable.duration(age)} ago: " if age is not None and data.stale else ""
    counts = [(severity, found.number(severity)) for severity in Severity]
    counts = [(severity, number) for severity, number in counts if number]
    muted = f", {found.muted} muted" if found.muted else ""
    if counts:
        words = ", ".join(
            fmt.plural(number, severity.value) if severity is Severity.WARNING else f"{number} {severity.value}"
            for severity, number in counts
        )
        return Headline(elements.SEVERITIES[counts[0][0]], prefix + words + muted, sure=not data.stale)
    if muted:
        return Headline(elements.UNKNOWN, f"{prefix}nothing wrong{muted}".capitalize(), sure=not data.stale)
    if age is None:
        return Headline(elements.UNKNOWN, "Unknown: no data from the broker yet", sure=False)
    if not found.checked:
        return Headline(elements.UNKNOWN, "Unknown: no rule was evaluated", sure=False)
    if {gap.rule for gap in found.inconclusive} >= set(found.checked):
        return Headline(elements.UNKNOWN, "Unknown: all rules are inconclusive", sure=False)
    if data.stale:
        return Headline(elements.UNKNOWN, f"{prefix}nothing wrong found. Current state unknown", sure=False)
    open_gaps = sum(not gap.permanent for gap in found.inconclusive)
    inconclusive = f", {fmt.plural(open_gaps, 'check')} inconclusive" if open_gaps else ""
    return Headline(elements.GOOD, f"Nothing wrong found{inconclusive}", sure=True)


def render(state: ExporterState, cluster: str, last_minute: datetime | None, now: Instant) -> None:
    """The headline of the selected cluster, the ages of its data, and whom it affects; the frame has the others."""
    polled = state.findings
    found = polled.of(cluster)
    data = data_age(found, polled, now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        title(headline(found, data))
        st.markdown(f"{literal(cluster)}", width="content")
        version = f"RabbitMQ {found.broker}" if found and found.broker else "RabbitMQ, version unknown"
        with st.container(key="plain-broker", width="content"):
            st.markdown(literal(version), width="content")
        _ages(state, found, last_minute, now)
    if found is not None:
        loud = [finding for finding in found.findings if not finding.muted]
        text = _for_whom(loud, polled.exporter_time(now)) if loud else checked(found, data)
        if text:
            elements.plain("for-whom" if loud else "checked", text)


def _for_whom(loud: Sequence[FindingReport], now: float) -> str:
    """Whom the findings affect, and since when; "" if neither is known."""
    begins = [(began, finding) for finding in loud if (began := readable.parse_iso(finding.since)) is not None]
    parts = [finding_rows.affected(loud)]
    if begins:
        began, first = min(begins, key=lambda it: it[0])
        moment = readable.clock(began, now, layout.current_zone())
        parts.append(f"since {moment}, {readable.duration(now - began)} ago, when {first.rule} began")
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)


def title(first: Headline) -> None:
    """Show a headline as the title of the page."""
    st.header(f":{first.style.colour}[{first.style.icon}] {first.text}", anchor=False, width="content")


def checked(found: ClusterFindings, data: DataAge) -> str:
    """What the headline is based on: number of rules evaluated and inconclusive, and the age of the data.

    Args:
        found: findings of the cluster.
        data: age of the data.
    """
    age = data.age
    if not found.checked:
        return (
            "No rule was evaluated: there is no data of this cluster yet." if age is None else "No rule was evaluated."
        )
    rules = set(found.checked)
    never = {gap.rule for gap in found.inconclusive if gap.permanent} & rules
    inconclusive = {gap.rule for gap in found.inconclusive if not gap.permanent} & rules
    with_findings = {finding.rule for finding in flat_reports(found.findings)} & rules
    clean = rules - never - inconclusive - with_findings
    basis = "no data" if age is None else f"data {readable.duration(age)} old"
    since = ", nothing newer is known" if data.stale else ""
    tally = [
        f"{len(with_findings)} with findings" if with_findings else "",
        f"{len(clean)} found nothing wrong" if clean else "",
        f"{len(inconclusive - with_findings)} inconclusive" if inconclusive - with_findings else "",
        f"{len(never - inconclusive - with_findings)} that cannot be judged in this setup"
        if never - inconclusive - with_findings
        else "",
    ]
    return f"{fmt.plural(len(rules), 'rule')} evaluated on {basis}{since}: {', '.join(filter(None, tally))}."


def _ages(state: ExporterState, found: ClusterFindings | None, last_minute: datetime | None, now: Instant) -> None:
    broker = data_age(found, state.findings, now)
    _age("broker data", broker.age, broker.overdue)
    probes = state.probes.of(found.cluster) if found else None
    if probes is not None and probes.down:
        elements.badge(elements.SEVERITIES[Severity.WARNING], "probes are down")
    else:
        _age("probe data", state.probes.age_at(probes.process.age_seconds, now) if probes and probes.probes else None)
    if last_minute is None:
        elements.badge(elements.UNKNOWN, "no history yet")
        return
    behind = now.wall - last_minute.timestamp()
    zone = layout.current_zone()
    text = f"history until {zone.local(last_minute):%H:%M} {zone.abbreviation(last_minute)}"
    if behind > _HISTORY_STALE_AFTER:
        elements.badge(elements.SEVERITIES[Severity.WARNING], f"{text}, {readable.duration(behind)} ago (stale)")
    else:
        st.badge(text, color="gray")


def _age(what: str, age: float | None, overdue: float | None = None) -> None:
    text = readable.age(what, age, overdue)
    if age is None:
        elements.badge(elements.UNKNOWN, text)
    elif readable.is_stale(age, overdue):
        elements.badge(elements.SEVERITIES[Severity.WARNING], text)
    else:
        st.badge(text, color="gray")


def scope(found: ClusterFindings, data: DataAge) -> None:
    """Show what was checked, suppressed and inconclusive. An inconclusive rule does not mean healthy."""
    if any(not finding.muted for finding in found.findings):
        elements.plain("checked", checked(found, data))
    open_gaps = [gap for gap in found.inconclusive if not gap.permanent]
    closed = [gap for gap in found.inconclusive if gap.permanent]
    if found.suppressed:
        with st.expander(f"{len(found.suppressed)} suppressed", icon=":material/visibility_off:"):
            elements.table(
                "suppressed",
                [
                    {"Rule": it.rule, "Subject": str(it.subject), "Suppressed because": it.because}
                    for it in found.suppressed
                ],
            )
    if not found.inconclusive:
        return
    rules = sorted({gap.rule for gap in (open_gaps or closed)})
    few = len(rules) <= (_MAX_INCONCLUSIVE_NAMED if found.findings else _MAX_NAMED_ALONE)
    label = f"Inconclusive: {literal(', '.join(rules))}" if few else f"{len(rules)} rules inconclusive, all or in part"
    with st.container(key="plain-gaps"), st.expander(label, icon=":material/help:"):
        elements.table(
            "inconclusive",
            [
                {
                    "Rules": ", ".join(rules),
                    "Because": because,
                    "Fix": needs,
                }
                for (because, needs), rules in _by_reason([*open_gaps, *closed]).items()
            ],
        )


def _by_reason(gaps: Sequence[InconclusiveReport]) -> dict[tuple[str, str], list[str]]:
    """Inconclusive rules by (reason, fix): one endpoint that cannot be read affects many rules."""
    found: dict[tuple[str, str], list[str]] = {}
    for gap in gaps:
        rules = found.setdefault((gap.because, gap.needs), [])
        if gap.rule not in rules:
            rules.append(gap.rule)
    return found
