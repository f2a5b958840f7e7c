"""One on-demand probe run by the exporter."""

from dataclasses import dataclass

import requests

from dashboard.data.exporter_client import REQUEST_OPTIONS, failure

MAX_SECONDS = 60.0
"""The exporter ends a run after this time."""
_MARGIN = 5.0


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """Result of an on-demand probe run.

    Attributes:
        ok: the exporter ran the probe; the report has its measurements.
        text: report and log, or the error.
    """

    ok: bool
    text: str


def run(url: str, cluster: str, probe: str, within: float) -> ProbeRun:
    """Run a probe and wait for its report; never raises for network or server errors.

    Args:
        url: URL of the exporter.
        cluster: name of the cluster.
        probe: name of the probe.
        within: timeout of the run in seconds, at most `MAX_SECONDS`.
    """
    try:
        response = requests.get(
            f"{url}/probe",
            params={"probe": probe, "target": cluster, "debug": "true"},
            headers={"x-prometheus-scrape-timeout-seconds": f"{within + _MARGIN / 2:.1f}"},
            timeout=(1.0, within + 2 * _MARGIN),
            **REQUEST_OPTIONS,
        )
    except requests.RequestException as error:
        return ProbeRun(ok=False, text=failure(error))
    return ProbeRun(ok=response.status_code == 200, text=response.text.strip())


def sections(text: str) -> dict[str, str]:
    """Sections of the exporter's response by heading: report, log, run, metrics."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("# ") and line[2:].split(" ", 1)[0] in {"report", "log", "run", "metrics"}:
            current = found.setdefault(line[2:].split(" ", 1)[0], [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}
