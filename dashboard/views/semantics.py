"""The page "Semantics": what acknowledgements and confirms mean on this broker, claim by claim."""

from collections import Counter

import streamlit as st

from ackscope.findings import Severity
from dashboard import wording
from dashboard.data import verified
from dashboard.data.verified import Claim
from dashboard.escape import visible
from dashboard.shell import Place, keep, wanted
from dashboard.views import parts

_LOOKS = {
    "holds": (parts.GOOD, "as documented"),
    "differs": (parts.SEVERITIES[Severity.WARNING], "otherwise than documented"),
    "not-applicable": (parts.UNKNOWN, "not in this version"),
    "needs-lab": (parts.UNKNOWN, "only seen on a broker that may be disturbed: ackscope verify --lab"),
    "could-not-tell": (parts.UNKNOWN, "could not be told"),
}
_ALL = "all"


def render(place: Place) -> None:
    """The table of `ackscope verify`, or how to get one."""
    path = place.settings.semantics
    if path is None:
        st.caption(
            "Nobody has verified this broker yet. The command below checks every documented claim on acknowledgements, "
            "prefetch, confirms and order against it, in queues of its own:"
        )
        st.code("ackscope verify --amqp URL --json > verified.json", language=None)
        st.caption("Then start the page with --semantics verified.json.")
        return
    found, problem = verified.read(path)
    if found is None:
        parts.plain("semantics-problem", f"{problem}")
        return
    made = path.stat().st_mtime
    when = f"{place.zone.at(made):%Y-%m-%d %H:%M} {place.zone.short(made)}"
    parts.plain(
        "semantics-of",
        f"{found.broker or 'a broker of unknown version'}, verified {when} ({path.name})",
    )
    numbers = Counter(claim.verdict for claim in found.rows)
    with st.container(horizontal=True, gap="small"):
        for verdict, (look, _) in _LOOKS.items():
            if numbers[verdict]:
                parts.badge(look, f"{numbers[verdict]} {verdict}")
    chosen = _choose(sorted(numbers))
    rows = [claim for claim in found.rows if chosen in {_ALL, claim.verdict}]
    for group in dict.fromkeys(claim.group for claim in rows):
        st.subheader(visible(group), anchor=False)
        parts.table(f"claims-{group}", [_row(claim) for claim in rows if claim.group == group])


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


def _row(claim: Claim) -> dict[str, str]:
    _, words = _LOOKS.get(claim.verdict, (parts.UNKNOWN, ""))
    return {
        "Claim": claim.name,
        "Documented": claim.documented,
        "Here": f"{claim.verdict}: {words}" if words else claim.verdict,
        "Seen": "; because: ".join(text for text in (claim.observed, claim.because) if text) or wording.ABSENT,
    }
