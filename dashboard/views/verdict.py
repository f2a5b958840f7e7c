"""The first line: is it bad? And how old the data is that says so."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from ackscope.clock import Instant
from ackscope.findings import Severity
from dashboard import wording
from dashboard.escape import literal
from dashboard.model import ClusterFindings, ClusterProbes, Feed, Live
from dashboard.views import parts
from dashboard.views.parts import Look


@dataclass(frozen=True, slots=True)
class Headline:
    """What to say first.

    Attributes:
        text: our own words and numbers only.
        sure: False where the data is old or absent: then nothing is called good.
    """

    look: Look
    text: str
    sure: bool


def headline(found: ClusterFindings | None, age: float | None, *, away: bool) -> Headline:
    """Judge one cluster by its findings and by the age of the data.

    Args:
        found: None where the exporter never told, or does not know the cluster.
        age: of the broker's last answer, seconds; None where there was none yet.
        away: the exporter does not answer now: `found` is what it said last.
    """
    if found is None:
        missing = "no answer from the exporter" if away else "the exporter does not watch this"
        return Headline(parts.UNKNOWN, f"Cannot tell: {missing}", sure=False)
    old = age is not None and (away or age > wording.STALE_AFTER)
    prefix = f"{wording.span(age)} ago: " if age is not None and old else ""
    counts = [(severity, found.number(severity)) for severity in Severity]
    counts = [(severity, number) for severity, number in counts if number]
    if counts:
        words = ", ".join(
            wording.plural(number, severity.value) if severity is Severity.WARNING else f"{number} {severity.value}"
            for severity, number in counts
        )
        return Headline(parts.SEVERITIES[counts[0][0]], prefix + words, sure=not old)
    if age is None:
        return Headline(parts.UNKNOWN, "Cannot tell: no data from the broker yet", sure=False)
    if not found.checked:
        return Headline(parts.UNKNOWN, "Cannot tell: no rule was checked", sure=False)
    if {gap.rule for gap in found.cannot_tell} >= set(found.checked):
        return Headline(parts.UNKNOWN, "Cannot tell: no rule could answer", sure=False)
    if old:
        return Headline(parts.UNKNOWN, f"{prefix}nothing wrong found; now: cannot tell", sure=False)
    silent = sum(not gap.permanent for gap in found.cannot_tell)
    beside = f", {wording.plural(silent, 'check')} without answer" if silent else ""
    return Headline(parts.GOOD, f"Nothing wrong found{beside}", sure=True)


def render(live: Live, cluster: str, last_minute: datetime | None, now: Instant) -> None:
    """The verdict of the chosen cluster in large, the others in a line, and the age of everything."""
    feed = live.findings
    known = {item.cluster: item for item in (feed.answer.clusters if feed.answer else ())}
    found = known.get(cluster)
    title(_headline(found, feed, now))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        version = f"RabbitMQ {found.broker}" if found and found.broker else "RabbitMQ, version unknown"
        st.markdown(f"{literal(cluster)}", width="content")
        with st.container(key="plain-broker", width="content"):
            st.markdown(literal(version), width="content")
        _ages(live, found, last_minute, now)
    others = [item for name, item in known.items() if name != cluster]
    if others:
        with st.container(horizontal=True, gap="small"):
            st.caption("Other clusters:", width="content")
            for item in others:
                other = _headline(item, feed, now)
                st.caption(
                    f"{literal(item.cluster)} :{other.look.colour}[{other.look.icon}] {other.text}", width="content"
                )


def title(first: Headline) -> None:
    """The first line, in large."""
    st.header(f":{first.look.colour}[{first.look.icon}] {first.text}", anchor=False)


def _headline(found: ClusterFindings | None, feed: Feed[ClusterFindings], now: Instant) -> Headline:
    age = feed.aged(found.age_seconds, now) if found else None
    return headline(found, age, away=feed.away is not None)


def _ages(live: Live, found: ClusterFindings | None, last_minute: datetime | None, now: Instant) -> None:
    broker = live.findings.aged(found.age_seconds, now) if found else None
    _age("broker data", broker)
    probes = _probes(live, found.cluster) if found else None
    if probes is not None and probes.down:
        parts.badge(parts.SEVERITIES[Severity.WARNING], "probes are down")
    else:
        _age("probe data", live.probes.aged(probes.process.age_seconds, now) if probes and probes.probes else None)
    if last_minute is None:
        parts.badge(parts.UNKNOWN, "no history yet")
        return
    behind = now.wall - last_minute.timestamp()
    text = f"history up to {last_minute:%H:%M} UTC"
    # The newest minute is at most two old while probes and pipeline run.
    if behind > 240:
        parts.badge(parts.SEVERITIES[Severity.WARNING], f"{text}, {wording.span(behind)} ago (stale)")
    else:
        st.badge(text, color="gray")


def _age(what: str, age: float | None) -> None:
    text = wording.age(what, age)
    if age is None:
        parts.badge(parts.UNKNOWN, text)
    elif age > wording.STALE_AFTER:
        parts.badge(parts.SEVERITIES[Severity.WARNING], text)
    else:
        st.badge(text, color="gray")


def _probes(live: Live, cluster: str) -> ClusterProbes | None:
    known = live.probes.answer.clusters if live.probes.answer else ()
    return next((item for item in known if item.cluster == cluster), None)


def scope(found: ClusterFindings) -> None:
    """What was checked, and what had no answer: a silent rule is not a clean bill of health."""
    open_gaps = [gap for gap in found.cannot_tell if not gap.permanent]
    closed = [gap for gap in found.cannot_tell if gap.permanent]
    silent = {gap.rule for gap in found.cannot_tell}
    answered = [rule for rule in found.checked if rule not in silent]
    if not found.findings and answered:
        parts.plain("checked", f"Checked: {', '.join(answered)}.")
    if not found.cannot_tell:
        return
    names = ", ".join(gap.rule for gap in (open_gaps or closed))
    with st.expander(f"Could not be told: {literal(names)}", icon=":material/help:"):
        parts.table(
            "cannot-tell",
            [
                {
                    "Rule": gap.rule,
                    "Because": gap.because,
                    "To make it answer": "nothing can: this broker never tells" if gap.permanent else gap.needs,
                }
                for gap in [*open_gaps, *closed]
            ],
        )
