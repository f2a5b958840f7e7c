"""Download of a diagnosis bundle, for people without access to the broker."""

import streamlit as st

from dashboard.data import bundle
from dashboard.data.model import ExporterState
from dashboard.format.escape import literal
from dashboard.settings import PageSettings

_STATE = "bundle"


def render(settings: PageSettings, state: ExporterState, cluster: str) -> None:
    """A button that fetches the bundle from the exporter, then one that saves it."""
    if state.findings.outage is not None:
        return
    if st.button("Create a diagnosis bundle", icon=":material/inventory_2:", type="tertiary", key="make-bundle"):
        st.session_state[_STATE] = (cluster, bundle.read(settings.exporter, cluster))
    cluster_of_file, file = st.session_state.get(_STATE, (None, None))
    if file is None or cluster_of_file != cluster:
        return
    if file.problem is not None:
        with st.container(key="plain-bundle-problem"):
            st.warning(f"Cannot create the bundle: {literal(file.problem)}", icon=":material/warning:")
        return
    st.download_button(
        f"Save {file.name} ({len(file.content) / 1024:,.0f} KiB)",
        file.content,
        file_name=file.name,
        mime="application/gzip",
        key="save-bundle",
        on_click="ignore",
        icon=":material/download:",
    )
    st.caption(
        "Contains all diagnosis data of this cluster: names of queues, users, hosts and clients, but no messages and "
        "no passwords. Diagnose it anywhere:"
    )
    st.code(f"ackscope diagnose --bundle {file.name}", language=None)
