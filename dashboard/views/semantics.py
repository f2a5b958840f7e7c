"""The page "Semantics": what acknowledgements and confirms mean on this broker, claim by claim."""

from collections import Counter

import streamlit as st

from ackscope.findings import Severity
from dashboard.data import verify_report
from dashboard.data.verify_report import VerifiedClaim
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.ui import elements
from dashboard.ui.layout import PageContext, keep, wanted

_LOOKS = {
    "holds": (elements.GOOD, "as documented"),
    "differs": (elements.SEVERITIES[Severity.WARNING], "otherwise than documented"),
    "not-applicable": (elements.UNKNOWN, "not in this version"),
    "needs-lab": (elements.UNKNOWN, "only seen on a broker that may be disturbed: ackscope verify --lab"),
    "could-not-tell": (elements.UNKNOWN, "could not be told"),
}
_ALL = "all"


def render(place: PageContext) -> None:
    """The table of `ackscope verify`, or how to get one."""
    path = place.settings.semantics
    if path is None:
        st.caption(
            "Nobody has verified this broker yet. The command below checks every documented claim on acknowledgements, "
            "prefetch, confirms and order against it, in queues of its own:"
        )
        st.code("ackscope verify --amqp URL --json > verify_report.json", language=None)
        st.caption("Then start the page with --semantics verify_report.json.")
        return
    found, problem = verify_report.read(path)
    if found is None:
        elements.plain("semantics-problem", f"{problem}")
        return
    made = path.stat().st_mtime
    when = f"{place.zone.at(made):%Y-%m-%d %H:%M} {place.zone.short(made)}"
    elements.plain(
        "semantics-of",
        f"{found.broker or 'a broker of unknown version'}, verified {when} ({path.name})",
    )
    numbers = Counter(claim.verdict for claim in found.rows)
    with st.container(horizontal=True, gap="small"):
        for verdict, (look, _) in _LOOKS.items():
            if numbers[verdict]:
                elements.badge(look, f"{numbers[verdict]} {verdict}")
    chosen = _choose(sorted(numbers))
    rows = [claim for claim in found.rows if chosen in {_ALL, claim.verdict}]
    for group in dict.fromkeys(claim.group for claim in rows):
        st.subheader(visible(group), anchor=False)
        elements.table(f"claims-{group}", [_row(claim) for claim in rows if claim.group == group])


def _choose(verdicts: list[str]) -> str:
    asked = wanted("verdict")
    names = [_ALL, *verdicts]
    chosen: str = (
        st.segmented_control(
            "Show",
            names,
            default=asked if asked in names else _ALL,
            key="verdict-choice",
            on_change=lambda: keep("verdict", st.session_state["verdict-choice"]),
            label_visibility="collapsed",
        )
        or _ALL
    )
    return chosen


def _row(claim: VerifiedClaim) -> dict[str, str]:
    _, words = _LOOKS.get(claim.verdict, (elements.UNKNOWN, ""))
    return {
        "Claim": claim.name,
        "Documented": claim.documented,
        "Here": f"{claim.verdict}: {words}" if words else claim.verdict,
        "Seen": "; because: ".join(text for text in (claim.observed, claim.because) if text) or readable.ABSENT,
    }
