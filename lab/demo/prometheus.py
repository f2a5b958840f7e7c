"""A real Prometheus for the demo and the tests: it scrapes the exporter and evaluates our alert rules."""

import shutil
from pathlib import Path
from typing import Any

import requests
import yaml

from ackscope.deploy_folder import DEPLOY
from ackscope.errors import MissingPart
from lab.demo.services import Service, Services

_RULES = [str(DEPLOY / "prometheus" / name) for name in ("ackscope-alerts.yml", "ackscope-recording.yml")]

_MAIN = '{probe="confirm",stream=~"classic|quorum|stream"}'
CONFIRM_P99 = (
    f"histogram_quantile(0.99, sum by (le, queue_type) (rate(ackscope_confirm_latency_seconds_bucket{_MAIN}[1m])))"
)
"""PromQL: p99 confirm latency by queue type, in seconds."""


def start_prometheus(
    services: Services, folder: Path, *, listen: str, target: str, cores: tuple[int, ...] = (), nice: int = 0
) -> Service:
    """Start Prometheus on `listen` to scrape `target` (host:port) every 5 s, with its data in `folder`.

    `cores` and `nice` are those of `Services.start`.

    Raises:
        MissingPart: the prometheus command is missing.
    """
    binary = shutil.which("prometheus")
    if binary is None:
        raise MissingPart("prometheus is missing: run make setup, or apt-get install prometheus")
    folder.mkdir(parents=True)
    config = folder / "prometheus.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
                "rule_files": _RULES,
                "scrape_configs": [{"job_name": "ackscope", "static_configs": [{"targets": [target]}]}],
            }
        )
    )
    service = services.start(
        "prometheus",
        [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={listen}",
        ],
        cores=cores,
        nice=nice,
    )
    service.wait_until(lambda: answers(f"http://{listen}/-/ready"), "a response from /-/ready", 60)
    return service


def answers(url: str, body: str | None = None) -> bool:
    """Return whether a GET of `url` returns 200 within two seconds, and `body` if it is given."""
    try:
        response = requests.get(url, timeout=2)
    except requests.RequestException:
        return False
    return response.ok and (body is None or response.text.strip() == body)


def query(base: str, expression: str, label: str) -> dict[str, float]:
    """Run an instant query on Prometheus at `base`. Returns label value -> number; empty if it does not respond."""
    try:
        response = requests.get(f"{base}/api/v1/query", params={"query": expression}, timeout=5)
        result: list[dict[str, Any]] = response.json()["data"]["result"]
    except (requests.RequestException, ValueError, KeyError):
        return {}
    values = {item["metric"].get(label, ""): float(item["value"][1]) for item in result}
    return {name: value for name, value in values.items() if value == value}  # noqa: PLR0124  NaN is "no data"
