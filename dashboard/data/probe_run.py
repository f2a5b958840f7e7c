"""One probe, run now by the exporter because somebody pressed a button."""

from dataclasses import dataclass

import requests

from dashboard.data.exporter_client import NEIGHBOUR, failure

LONGEST = 60.0
"""Seconds that a run may take; the exporter ends it then."""
_MARGIN = 5.0


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """What came of it.

    Attributes:
        ok: the exporter ran it; the report tells what it measured.
        text: report and log, or why there is none.
    """

    ok: bool
    text: str


def run(url: str, cluster: str, probe: str, within: float) -> ProbeRun:
    """Run it and wait; nothing is raised for what the other side does.

    Args:
        url: of the exporter.
        cluster: its name there.
        probe: name of the probe.
        within: seconds that it may take, `LONGEST` at most.
    """
    try:
        response = requests.get(
            f"{url}/probe",
            params={"probe": probe, "target": cluster, "debug": "true"},
            headers={"x-prometheus-scrape-timeout-seconds": f"{within + _MARGIN / 2:.1f}"},
            timeout=(1.0, within + 2 * _MARGIN),
            **NEIGHBOUR,
        )
    except requests.RequestException as error:
        return ProbeRun(ok=False, text=failure(error))
    return ProbeRun(ok=response.status_code == 200, text=response.text.strip())


def sections(text: str) -> dict[str, str]:
    """The parts of the exporter's answer by their headings: report, log, run, metrics."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("# ") and line[2:].split(" ", 1)[0] in {"report", "log", "run", "metrics"}:
            current = found.setdefault(line[2:].split(" ", 1)[0], [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}
