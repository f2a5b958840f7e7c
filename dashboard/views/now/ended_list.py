"""The findings that ended in the last hour: an alert may be over before somebody looks."""

import streamlit as st

from ackscope import format as fmt
from ackscope.clock import Instant
from ackscope.format import ABSENT
from ackscope.reports import EndedReport
from dashboard.data.model import ClusterFindings, Polled
from dashboard.format import readable
from dashboard.format.timezones import Zone
from dashboard.ui import elements, layout


def render(found: ClusterFindings, polled: Polled[ClusterFindings], now: Instant) -> None:
    """A box to open, with a line for each finding; nothing if none ended.

    Args:
        found: findings of the cluster.
        polled: the response that they are from.
        now: this machine's clock.
    """
    age = polled.age_at(found.ended[0].ended_seconds, now) if found.ended else None
    if age is None:
        return
    ago, zone = readable.duration(age), layout.current_zone()
    label = f"{fmt.plural(len(found.ended), 'finding')} ended in the last hour, the latest {ago} ago"
    with st.expander(label, key="ended-findings", icon=":material/history:"):
        elements.table("ended", [_row(each, polled.exporter_time(now), zone) for each in found.ended])


def _row(each: EndedReport, now: float, zone: Zone) -> dict[str, str]:
    began, ended = readable.parse_iso(each.since), readable.parse_iso(each.ended_at)
    return {
        "Ended": ABSENT if ended is None else readable.clock(ended, now, zone),
        "Lasted": ABSENT if began is None or ended is None else readable.duration(ended - began),
        "What": each.rule,
        "Who": str(each.subject),
        "Severity": each.severity.value,
    }
