import re
import subprocess
from pathlib import Path

import pytest
import yaml

from diagnosis.rules import RULES
from exporter.api.runbooks import alert_runbooks, runbooks

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
        ["check", "rules", "ackscope-alerts.yml", "ackscope-recording.yml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "ackscope-alerts.test.yml", "ackscope-recording.test.yml"],
    ],
    ids=" ".join,
)
def test_promtool_agrees(words):
    """Prometheus loads the files, and the alerts fire only when they should."""
    done = subprocess.run(["promtool", *words], cwd=FOLDER, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_every_alert_is_tested():
    """An alert that no test makes fire may never fire."""
    tests = yaml.safe_load((FOLDER / "ackscope-alerts.test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}

    assert {alert["alert"] for alert in ALERTS} == fired


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_says_how_soon_what_and_where_to_read_on(alert):
    """Severity, summary, and a runbook that the exporter serves, of each rule that may fire it or of the alert."""
    address, _, query = alert["annotations"]["runbook_url"].partition("?")
    rules = {rule.name for rule in RULES} if query == "rule={{ $labels.rule }}" else set()

    assert "http://{{ $labels.instance }}/runbook" == address
    assert rules or (query == f"alert={alert['alert']}" and alert["alert"] in alert_runbooks())
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"]["summary"]
    assert [] == sorted(rules - set(runbooks()))


def test_the_list_of_alerts_is_complete():
    """docs/prometheus.md has a row for each, with its severity, how long it waits, and the link to its paragraph."""
    page = (ROOT / "docs/prometheus.md").read_text()
    listed = set(
        re.findall(
            r"^\| \[(Ackscope\w+)\]\(\.\./diagnosis/catalogue/README\.md(?:#(\w+))?\) \| (\w+) \| (\w+) \|",
            page,
            re.MULTILINE,
        )
    )
    expected = {
        (name, name.lower() if name in alert_runbooks() else "", alert["labels"]["severity"], alert.get("for", "0"))
        for alert in ALERTS
        if (name := alert["alert"])
    }

    assert expected == listed


def test_the_list_of_recording_rules_is_complete():
    """By name."""
    page = (ROOT / "docs/prometheus.md").read_text()
    groups = yaml.safe_load((FOLDER / "ackscope-recording.yml").read_text())["groups"]

    assert [] == [rule["record"] for group in groups for rule in group["rules"] if f"`{rule['record']}`" not in page]


def test_alerts_ask_for_metrics_that_are_documented():
    """A metric that was renamed would leave an alert that never fires."""
    reference = (ROOT / "docs/metrics.md").read_text()
    asked = {name for alert in ALERTS for name in re.findall(r"\backscope_\w+", alert["expr"])}

    assert [] == sorted(name for name in asked if f"`{name}`" not in reference)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_pages_or_warns_with_the_way_to_its_runbook(rule, tmp_path):
    """A real promtool: a finding of this rule fires its alert, and the link names this rule."""
    tests = []
    for severity, alert in (("critical", "AckscopeFindingCritical"), ("warning", "AckscopeFindingWarning")):
        labels = {
            "cluster": "shop",
            "rule": rule.name,
            "severity": severity,
            "kind": "queue",
            "name": "q",
            "instance": "x:1",
        }
        series = "ackscope_finding{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
        ends = {"critical": "are being lost or stopped now", "warning": "will be lost or stopped, or are slow"}[
            severity
        ]
        reported = {
            "summary": f"{rule.name}: queue q of cluster shop: messages {ends}",
            "runbook_url": f"http://x:1/runbook?rule={rule.name}",
        }
        case = {
            "eval_time": "3m",
            "alertname": alert,
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": reported}],
        }
        inputs = [{"series": series, "values": "1x20"}]
        tests.append({"interval": "15s", "input_series": inputs, "alert_rule_test": [case]})
    file = tmp_path / "rule.test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FOLDER / "ackscope-alerts.yml")], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
