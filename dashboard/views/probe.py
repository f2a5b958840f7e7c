"""The page "Probe": run a probe now, and read its report."""

import time
from concurrent.futures import ThreadPoolExecutor

import streamlit as st

from dashboard.data import probe_run
from dashboard.format.escape import visible
from dashboard.ui.layout import PageContext, select
from probes.catalogue import PROBES

_SECONDS = (10, 20, 30, 60)


def render(context: PageContext) -> None:
    """Select a probe, run it, and show its report."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    st.caption(
        "A probe connects to the broker as a client and uses queues of its own, which it deletes afterwards. It does "
        "not touch your queues. Only one probe runs at a time."
    )
    probe_box, timeout_box, button_box = st.columns([3, 1, 1], vertical_alignment="bottom")
    probe = select(
        probe_box,
        "Probe",
        list(PROBES),
        "probe",
        "probe-choice",
        words=lambda name: f"{name}: {PROBES[name].summary}",
    )
    within: int = timeout_box.selectbox("Timeout, seconds", _SECONDS, index=1, key="probe-seconds")
    if button_box.button("Run it now", type="primary", icon=":material/play_arrow:"):
        st.session_state["probe-report"] = (context.cluster, probe, _run(context, probe, within))
    _report(context)


def _run(context: PageContext, probe: str, within: int) -> probe_run.ProbeRun:
    url, cluster = context.settings.exporter, context.cluster or ""
    bar = st.progress(0.0, text=f"{probe} is running, timeout {within} s")
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as worker:
        waiting = worker.submit(probe_run.run, url, cluster, probe, float(within))
        while not waiting.done():
            passed = time.monotonic() - began
            bar.progress(min(passed / within, 1.0), text=f"{probe} is running: {passed:.0f} of {within} s")
            time.sleep(0.3)
    bar.empty()
    return waiting.result()


def _report(context: PageContext) -> None:
    cluster, probe, done = st.session_state.get("probe-report", (None, None, None))
    if cluster != context.cluster or done is None:
        return
    if not done.ok:
        st.error("The probe did not run.", icon=":material/error:")
        st.code(visible(done.text), language=None, wrap_lines=True)
        return
    found = probe_run.sections(done.text)
    st.subheader(f"Report of the {probe} probe", anchor=False)
    st.code(_lines(found.get("report") or done.text), language=None)
    st.caption(visible(found.get("run", "")))
    if found.get("log") and found["log"] != "empty":
        with st.expander("Log"):
            st.code(_lines(found["log"]), language=None, wrap_lines=True)


def _lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.splitlines())
