"""The light in the frame: how old the data is and whether the probes measure, in words and a colour."""

from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st

from ackscope import format as fmt
from ackscope.clock import Instant, SystemClock
from ackscope.findings import Severity
from ackscope.records import ProbeState
from dashboard.data.model import ExporterState
from dashboard.format import readable
from dashboard.ui import cache, elements
from dashboard.ui.elements import BadgeStyle
from dashboard.ui.layout import PageContext
from dashboard.views.now.headline import data_age

_BAD, _WARNING = elements.SEVERITIES[Severity.CRITICAL], elements.SEVERITIES[Severity.WARNING]
_WORST_FIRST = (_BAD, _WARNING, elements.UNKNOWN, elements.GOOD)


@dataclass(frozen=True, slots=True)
class HealthLight:
    """State of one part of the monitoring.

    Attributes:
        words: contains no foreign text.
        because: the reason, which may contain foreign text; "" if there is none.
    """

    style: BadgeStyle
    words: str
    because: str = ""


def data_light(state: ExporterState, cluster: str | None, now: Instant) -> HealthLight:
    """Whether the data of the broker is fresh."""
    outage = state.findings.outage
    if outage is not None:
        return HealthLight(_BAD, "exporter unreachable", outage.reason)
    found = state.findings.of(cluster)
    data = data_age(found, state.findings, now)
    totals = state.snapshot.of(cluster)
    if totals is not None and totals.overview.error is not None:
        return HealthLight(_BAD, "broker unreachable", totals.overview.error)
    if data.age is None:
        return HealthLight(elements.UNKNOWN, "no data yet")
    age = f"data {readable.duration(data.age)} old"
    return HealthLight(_WARNING, f"{age} (stale)") if data.stale else HealthLight(elements.GOOD, age)


def probe_light(state: ExporterState, cluster: str | None, now: Instant) -> HealthLight:
    """Whether the probes of a cluster measure, and whether their results can be trusted."""
    if state.probes.outage is not None:
        return HealthLight(_WARNING, "probes unknown", state.probes.outage.reason)
    probes = state.probes.of(cluster)
    if probes is None or not (probes.probes or probes.down):
        return HealthLight(elements.UNKNOWN, "no probes", "configure `amqp:` for this cluster")
    if probes.down:
        return HealthLight(_WARNING, "probes down", "the exporter restarts their process")
    total = fmt.plural(len(probes.probes), "probe")
    if readable.is_stale(state.probes.age_at(probes.process.age_seconds, now)):
        return HealthLight(_WARNING, "probes stale", "their process has not reported for some time")
    failing = [it for it in probes.probes if it.state in {ProbeState.FAILED, ProbeState.BLOCKED}]
    if failing:
        reason = next((it.reason for it in failing if it.reason), "")
        return HealthLight(_WARNING, f"{len(failing)} of {total} cannot measure", reason)
    doubtful = [it.doubtful for it in probes.probes if it.doubtful is not None]
    if doubtful:
        return HealthLight(elements.UNKNOWN, f"{len(doubtful)} of {total} doubtful", doubtful[0])
    return HealthLight(elements.GOOD, f"{total} fine")


def render(context: PageContext) -> None:
    """One light for both; a click shows the reasons."""
    _light(context)


@st.fragment(run_every="10s")
def _light(context: PageContext) -> None:
    state, now = cache.exporter_state(context.settings.exporter), SystemClock().now()
    lights = [data_light(state, context.cluster, now)]
    if state.findings.outage is None and context.cluster is not None:
        lights.append(probe_light(state, context.cluster, now))
    worst = min(lights, key=lambda light: _WORST_FIRST.index(light.style))
    words = ", ".join(light.words for light in lights)
    label = f":{worst.style.colour}[{worst.style.icon}] {words[:1].upper()}{words[1:]}"
    with st.popover(label, type="tertiary", key="health-light"):
        for number, text in enumerate(_details(lights, context)):
            elements.plain(f"light-{number}", text)


def _details(lights: list[HealthLight], context: PageContext) -> Iterator[str]:
    for light in lights:
        words = f"{light.words[:1].upper()}{light.words[1:]}"
        yield f"{words}: {light.because}" if light.because else f"{words}."
    last = cache.last_minute(context.settings.rollups, context.cluster or "")
    yield (
        "No history yet."
        if last is None
        else (f"History until {readable.minute(last, context.zone)} {context.zone.abbreviation(last)}.")
    )
