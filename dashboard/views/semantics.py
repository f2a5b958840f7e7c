"""The page "Semantics": documented guarantees of acks and confirms, verified against this broker."""

from collections import Counter

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from dashboard.data import verify_report
from dashboard.data.verify_report import VerifiedClaim
from dashboard.format.escape import visible
from dashboard.ui import elements
from dashboard.ui.layout import PageContext, get_param, set_param

_STYLES = {
    "holds": (elements.GOOD, ""),
    "differs": (elements.SEVERITIES[Severity.WARNING], ""),
    "not-applicable": (elements.UNKNOWN, "does not apply to this version"),
    "needs-lab": (elements.UNKNOWN, "needs a broker that may be disrupted: ackscope verify --lab"),
    "could-not-tell": (elements.UNKNOWN, "inconclusive"),
}
_ALL = "all"


def render(context: PageContext) -> None:
    """The report of `ackscope verify`, or how to create one."""
    path = context.settings.semantics
    if path is None:
        st.caption(
            "This broker has not been verified yet. The command below checks every documented claim about acks, "
            "prefetch, confirms and ordering against it, in queues of its own:"
        )
        st.code("ackscope verify --amqp URL --json > verified.json", language=None)
        st.caption("Then start the dashboard with --semantics verified.json.")
        return
    found, problem = verify_report.read(path)
    if found is None:
        elements.plain("semantics-problem", f"{problem}")
        return
    verified_at = path.stat().st_mtime
    when = f"{context.zone.local(verified_at):%Y-%m-%d %H:%M} {context.zone.abbreviation(verified_at)}"
    elements.plain(
        "semantics-of",
        f"{found.broker or 'broker of unknown version'}, verified {when} ({path.name})",
    )
    numbers = Counter(claim.verdict for claim in found.rows)
    with st.container(horizontal=True, gap="small"):
        for verdict, (style, _) in _STYLES.items():
            if numbers[verdict]:
                elements.badge(style, f"{numbers[verdict]} {verdict}")
    selected = _select_verdict(sorted(numbers))
    rows = [claim for claim in found.rows if selected in {_ALL, claim.verdict}]
    for group in dict.fromkeys(claim.group for claim in rows):
        st.subheader(visible(group), anchor=False)
        elements.table(f"claims-{group}", [_row(claim) for claim in rows if claim.group == group])


def _select_verdict(verdicts: list[str]) -> str:
    current = get_param("verdict")
    names = [_ALL, *verdicts]
    selected: str = (
        st.segmented_control(
            "Show",
            names,
            default=current if current in names else _ALL,
            key="verdict-choice",
            on_change=lambda: set_param("verdict", st.session_state["verdict-choice"]),
            label_visibility="collapsed",
        )
        or _ALL
    )
    return selected


def _row(claim: VerifiedClaim) -> dict[str, str]:
    _, words = _STYLES.get(claim.verdict, (elements.UNKNOWN, ""))
    return {
        "Claim": claim.name,
        "Documented": claim.documented,
        "Here": f"{claim.verdict}: {words}" if words else claim.verdict,
        "Observed": "; because: ".join(text for text in (claim.observed, claim.because) if text) or fmt.ABSENT,
    }
