import re
import subprocess
from pathlib import Path

import pytest
import yaml

from diagnosis.rules import RULES

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/prometheus"
ALERTS = [
    alert
    for group in yaml.safe_load((FOLDER / "ackscope-alerts.yml").read_text())["groups"]
    for alert in group["rules"]
]


@pytest.mark.parametrize(
    "words",
    [
        ["check", "rules", "ackscope-alerts.yml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "ackscope-alerts.test.yml"],
    ],
    ids=" ".join,
)
def test_promtool_agrees(words):
    """Prometheus loads the files, and the alerts fire when they should and not else."""
    done = subprocess.run(["promtool", *words], cwd=FOLDER, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_every_alert_is_tested():
    """An alert that no test makes fire may never fire."""
    tests = yaml.safe_load((FOLDER / "ackscope-alerts.test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}

    assert {alert["alert"] for alert in ALERTS} == fired


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_says_how_soon_what_and_where_to_read_on(alert):
    """Severity, summary, and a runbook that exists for every rule that may fire it."""
    url = alert["annotations"]["runbook_url"]
    pages = {url.replace("{{ $labels.rule }}", rule.name) for rule in RULES}

    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"]["summary"]
    assert [] == [page for page in pages if not (ROOT / page).is_file()]


def test_alerts_about_ackscope_itself_have_a_paragraph():
    """Their page is one for all of them."""
    page = (ROOT / "docs/runbooks/README.md").read_text()
    own = [alert["alert"] for alert in ALERTS if alert["annotations"]["runbook_url"].endswith("README.md")]

    assert [] == [name for name in own if f"**{name}.**" not in page]


def test_alerts_ask_for_metrics_that_are_documented():
    """A metric that was renamed would leave an alert that never fires."""
    reference = (ROOT / "docs/metrics.md").read_text()
    asked = {name for alert in ALERTS for name in re.findall(r"\backscope_\w+", alert["expr"])}

    assert [] == sorted(name for name in asked if f"`{name}`" not in reference)
