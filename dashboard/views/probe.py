"""The page "Probe": run a probe or a sweep now, and read its report."""

import time
from concurrent.futures import ThreadPoolExecutor

import streamlit as st

from dashboard.data import probe_run
from dashboard.format.escape import visible
from dashboard.ui.layout import PageContext, choose
from probes.settings import NAMES

_MEANINGS = {
    "confirm": "publishes with confirms on every queue type: latency, batching, outcomes",
    "delivery": "publishes and consumes: latency to the consumer, order, loss, duplicates",
    "handshake": "opens connections: name lookup, TCP, TLS, AMQP, channel",
    "rtt": "asks the broker for a reply again and again: the round trip",
    "redelivery": "rejects and gets again: how long a message that is given back takes",
    "prefetch": "a sweep: throughput at several prefetch values, its knee, and which to choose",
    "nack": "publishes where the broker must refuse: whether nacks come, and how soon",
}
_SECONDS = (10, 20, 30, 60)


def render(place: PageContext) -> None:
    """Choose, press, wait, read."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    st.caption(
        "A probe acts on the broker as a client of its own, in its own queues, which it sweeps afterwards; it touches "
        "nothing of yours. One runs at a time."
    )
    which, how_long, go = st.columns([3, 1, 1], vertical_alignment="bottom")
    probe = choose(
        which,
        "Probe",
        list(NAMES),
        "probe",
        "probe-choice",
        words=lambda name: f"{name}: {_MEANINGS.get(name, '')}",
    )
    within: int = how_long.selectbox("Seconds at most", _SECONDS, index=1, key="probe-seconds")
    if go.button("Run it now", type="primary", icon=":material/play_arrow:"):
        st.session_state["probe-report"] = (place.cluster, probe, _run(place, probe, within))
    _report(place)


def _run(place: PageContext, probe: str, within: int) -> probe_run.ProbeRun:
    url, cluster = place.settings.exporter, place.cluster or ""
    bar = st.progress(0.0, text=f"{probe} runs, {within} s at most")
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as worker:
        waiting = worker.submit(probe_run.run, url, cluster, probe, float(within))
        while not waiting.done():
            passed = time.monotonic() - began
            bar.progress(min(passed / within, 1.0), text=f"{probe} runs: {passed:.0f} of {within} s at most")
            time.sleep(0.3)
    bar.empty()
    return waiting.result()


def _report(place: PageContext) -> None:
    cluster, probe, done = st.session_state.get("probe-report", (None, None, None))
    if cluster != place.cluster or done is None:
        return
    if not done.ok:
        st.error("The probe did not run.", icon=":material/error:")
        st.code(visible(done.text), language=None, wrap_lines=True)
        return
    found = probe_run.sections(done.text)
    st.subheader(f"What {probe} measured", anchor=False)
    st.code(_lines(found.get("report") or done.text), language=None)
    st.caption(visible(found.get("run", "")))
    if found.get("log") and found["log"] != "empty":
        with st.expander("Its log"):
            st.code(_lines(found["log"]), language=None, wrap_lines=True)


def _lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.splitlines())
