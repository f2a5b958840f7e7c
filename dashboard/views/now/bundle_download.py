"""Take what is known along: a bundle that somebody else can judge without the broker."""

import streamlit as st

from dashboard.data import bundle
from dashboard.data.model import ExporterState
from dashboard.format.escape import literal
from dashboard.settings import PageSettings

_MADE = "bundle"


def render(settings: PageSettings, live: ExporterState, cluster: str) -> None:
    """A button that has the exporter make it, then one that saves it: it is made when it is asked for."""
    if live.findings.away is not None:
        return
    if st.button("Make a bundle to hand over", icon=":material/inventory_2:", type="tertiary", key="make-bundle"):
        st.session_state[_MADE] = (cluster, bundle.read(settings.exporter, cluster))
    made_of, made = st.session_state.get(_MADE, (None, None))
    if made is None or made_of != cluster:
        return
    if made.problem is not None:
        with st.container(key="plain-bundle-problem"):
            st.warning(f"No bundle could be made: {literal(made.problem)}", icon=":material/warning:")
        return
    st.download_button(
        f"Save {made.name} ({len(made.content) / 1024:,.0f} KiB)",
        made.content,
        file_name=made.name,
        mime="application/gzip",
        key="save-bundle",
        on_click="ignore",
        icon=":material/download:",
    )
    st.caption(
        "All that diagnosis knows of this cluster: names of queues, users, hosts and clients, and no message and no "
        "password. Judge it anywhere:"
    )
    st.code(f"ackscope diagnose --bundle {made.name}", language=None)
