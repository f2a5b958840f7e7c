"""The first line: is it bad? And how old the data is that says so."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from ackscope.clock import Instant
from ackscope.findings import Inconclusive, Severity, flat
from dashboard.data.model import ClusterFindings, ExporterState, Polled
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import elements, layout
from dashboard.ui.elements import BadgeStyle

_NAMED = 12
"""Rules of one severity that are named in the line of all."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What to say first.

    Attributes:
        text: our own words and numbers only.
        sure: False where the data is old or absent: then nothing is called good.
    """

    look: BadgeStyle
    text: str
    sure: bool


@dataclass(frozen=True, slots=True)
class DataAge:
    """What a verdict rests on.

    Attributes:
        age: of the broker's oldest answer that counts, seconds; None where there was none yet.
        away: the exporter does not answer now: its verdict is what it said last.
        overdue: for how long a newer answer has been due; None where that is not known.
    """

    age: float | None
    away: bool = False
    overdue: float | None = None

    @property
    def old(self) -> bool:
        """Whether it says nothing of now."""
        return self.age is not None and (self.away or readable.is_stale(self.age, self.overdue))


def data_of(found: ClusterFindings | None, feed: Polled[ClusterFindings], now: Instant) -> DataAge:
    """What the verdict on a cluster rests on, as of `now`."""
    away = feed.away is not None
    if found is None:
        return DataAge(None, away)
    return DataAge(feed.aged(found.age_seconds, now), away, feed.aged(found.overdue_seconds, now))


def headline(found: ClusterFindings | None, data: DataAge) -> Headline:
    """Judge one cluster by its findings and by the age of the data.

    Args:
        found: None where the exporter never told, or does not know the cluster.
        data: what the findings rest on.
    """
    age = data.age
    if found is None:
        missing = "no answer from the exporter" if data.away else "the exporter does not watch this"
        return Headline(elements.UNKNOWN, f"Cannot tell: {missing}", sure=False)
    prefix = f"{readable.span(age)} ago: " if age is not None and data.old else ""
    counts = [(severity, found.number(severity)) for severity in Severity]
    counts = [(severity, number) for severity, number in counts if number]
    if counts:
        words = ", ".join(
            readable.plural(number, severity.value) if severity is Severity.WARNING else f"{number} {severity.value}"
            for severity, number in counts
        )
        return Headline(elements.SEVERITIES[counts[0][0]], prefix + words, sure=not data.old)
    if age is None:
        return Headline(elements.UNKNOWN, "Cannot tell: no data from the broker yet", sure=False)
    if not found.checked:
        return Headline(elements.UNKNOWN, "Cannot tell: no rule was checked", sure=False)
    if {gap.rule for gap in found.inconclusive} >= set(found.checked):
        return Headline(elements.UNKNOWN, "Cannot tell: no rule could answer", sure=False)
    if data.old:
        return Headline(elements.UNKNOWN, f"{prefix}nothing wrong found; now: cannot tell", sure=False)
    silent = sum(not gap.permanent for gap in found.inconclusive)
    beside = f", {readable.plural(silent, 'check')} without answer" if silent else ""
    return Headline(elements.GOOD, f"Nothing wrong found{beside}", sure=True)


def every(found: ClusterFindings) -> str:
    """All findings by their rules, the worst first: the first card alone may fill a screen."""
    texts = []
    for severity in Severity:
        rules = Counter(each.rule for each in found.findings if each.severity is severity)
        if rules:
            names = [rule if number == 1 else f"{rule} ({number})" for rule, number in rules.items()]
            more = f" and {len(names) - _NAMED} more rules" if len(names) > _NAMED else ""
            texts.append(f"{severity.value}: {', '.join(names[:_NAMED])}{more}")
    return "; ".join(texts)


def render(live: ExporterState, cluster: str, last_minute: datetime | None, now: Instant) -> None:
    """The verdict of the chosen cluster in large, the others in a line, and the age of everything."""
    feed = live.findings
    known = {item.cluster: item for item in (feed.answer.clusters if feed.answer else ())}
    found = known.get(cluster)
    title(headline(found, data_of(found, feed, now)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        version = f"RabbitMQ {found.broker}" if found and found.broker else "RabbitMQ, version unknown"
        st.markdown(f"{literal(cluster)}", width="content")
        with st.container(key="plain-broker", width="content"):
            st.markdown(literal(version), width="content")
        _ages(live, found, last_minute, now)
    if found is not None and not found.findings:
        elements.plain("checked", checked(found, data_of(found, feed, now)))
    if found is not None and len(found.findings) > 1:
        elements.plain("every", every(found))
    others = [item for name, item in known.items() if name != cluster]
    if others:
        with st.container(horizontal=True, gap="small"):
            st.caption("Other clusters:", width="content")
            for item in others:
                other = headline(item, data_of(item, feed, now))
                st.caption(
                    f"{literal(item.cluster)} :{other.look.colour}[{other.look.icon}] {other.text}", width="content"
                )


def title(first: Headline) -> None:
    """The first line, in large."""
    st.header(f":{first.look.colour}[{first.look.icon}] {first.text}", anchor=False)


def checked(found: ClusterFindings, data: DataAge) -> str:
    """On what ground that is said: how many rules looked, at data of what age, and how many could not tell.

    Args:
        found: of the cluster.
        data: what its rules looked at.
    """
    age = data.age
    if not found.checked:
        return "No rule was checked: nothing is known of this cluster yet." if age is None else "No rule was checked."
    rules = set(found.checked)
    never = {gap.rule for gap in found.inconclusive if gap.permanent} & rules
    silent = {gap.rule for gap in found.inconclusive if not gap.permanent} & rules
    told = {finding.rule for finding in flat(found.findings)} & rules
    clean = rules - never - silent - told
    seen = "no data" if age is None else f"data {readable.span(age)} old"
    since = " and nothing is known since" if data.old else ""
    tally = [
        f"{len(told)} found something" if told else "",
        f"{len(clean)} found nothing wrong" if clean else "none could answer" if not told else "",
        f"{len(silent - told)} could not tell" if silent - told else "",
        f"{len(never - silent - told)} never can on this broker" if never - silent - told else "",
    ]
    return f"{readable.plural(len(rules), 'rule')} looked at {seen}{since}: {', '.join(filter(None, tally))}."


def _ages(live: ExporterState, found: ClusterFindings | None, last_minute: datetime | None, now: Instant) -> None:
    broker = data_of(found, live.findings, now)
    _age("broker data", broker.age, broker.overdue)
    probes = live.probes.of(found.cluster) if found else None
    if probes is not None and probes.down:
        elements.badge(elements.SEVERITIES[Severity.WARNING], "probes are down")
    else:
        _age("probe data", live.probes.aged(probes.process.age_seconds, now) if probes and probes.probes else None)
    if last_minute is None:
        elements.badge(elements.UNKNOWN, "no history yet")
        return
    behind = now.wall - last_minute.timestamp()
    zone = layout.zone()
    text = f"history up to {zone.at(last_minute):%H:%M} {zone.short(last_minute)}"
    # The newest minute is at most two old while probes and pipeline run.
    if behind > 240:
        elements.badge(elements.SEVERITIES[Severity.WARNING], f"{text}, {readable.span(behind)} ago (stale)")
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
    """What was checked, and what had no answer: a silent rule is not a clean bill of health."""
    if found.findings:
        elements.plain("checked", checked(found, data))
    open_gaps = [gap for gap in found.inconclusive if not gap.permanent]
    closed = [gap for gap in found.inconclusive if gap.permanent]
    if found.suppressed:
        with st.expander(
            f"{len(found.suppressed)} that look ill, and are left alone", icon=":material/visibility_off:"
        ):
            elements.table(
                "set-aside",
                [
                    {"Looks like": it.rule, "About": str(it.subject), "Left alone because": it.because}
                    for it in found.suppressed
                ],
            )
    if not found.inconclusive:
        return
    rules = sorted({gap.rule for gap in (open_gaps or closed)})
    names = ", ".join(rules) if len(rules) <= _FEW else f"{len(rules)} rules"
    with st.expander(f"Could not be told: {literal(names)}", icon=":material/help:"):
        elements.table(
            "cannot-tell",
            [
                {
                    "Rules": ", ".join(rules),
                    "Because": because,
                    "To make it answer": "nothing can: this broker never tells" if permanent else needs,
                }
                for (because, needs, permanent), rules in _by_reason([*open_gaps, *closed]).items()
            ],
        )


_FEW = 6
"""So many names can be read; of more their number is told."""


def _by_reason(gaps: Sequence[Inconclusive]) -> dict[tuple[str, str, bool], list[str]]:
    """What is lacking -> rules that lack it: one part that cannot be read makes many rules blind."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    for gap in gaps:
        rules = found.setdefault((gap.because, gap.needs, gap.permanent), [])
        if gap.rule not in rules:
            rules.append(gap.rule)
    return found
