"""The alerts that Alertmanager gets; `tests/integration/exporter/test_delivery.py` has a real one."""

from datetime import datetime

import pytest

from ackscope.findings import Severity
from tests.unit.exporter.delivery.receiving import Fed, receiving
from tests.unit.exporter.made import finding

LASTS = 4 * 3600.0
"""Seconds for which an alert goes on that is sent again every hour."""


@pytest.fixture
def fed():
    """A worker for an Alertmanager that accepts alerts, and what it got."""
    with receiving() as receiver:
        settings = {"url": f"http://127.0.0.1:{receiver.port}", "refresh": "1h", "labels": {"team": "a"}}
        yield Fed({"alertmanager": settings}, repeat=0), receiver


def test_a_change_of_severity_ends_one_alert_and_starts_another(fed):
    """The severity is a label, and labels are the identity of an alert."""
    it, receiver = fed
    it.diagnosed(finding(), later=1)
    it.worker._refresh_at = float("inf")
    it.worker._retry_at = float("-inf")
    receiver.arrived.clear()
    it.diagnosed(finding(severity=Severity.CRITICAL), later=60)
    (alerts,) = receiver.arrived
    now = it.clock.now().iso()

    assert [("warning", True), ("critical", False)] == [
        (alert["labels"]["severity"], alert["endsAt"] <= now) for alert in alerts
    ]
    assert {alerts[0]["startsAt"]} == {alert["startsAt"] for alert in alerts}


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_the_times_of_an_alert_are_by_the_clock_of_alertmanager(fed, ahead):
    """Known from its responses: an alert that goes on would else be over when it arrives at a clock that is ahead."""
    it, receiver = fed
    receiver.ahead = ahead
    it.diagnosed(finding())
    receiver.arrived.clear()
    it.diagnosed(finding(severity=Severity.CRITICAL), later=60)
    ends = max(alert["endsAt"] for alerts in receiver.arrived for alert in alerts)

    assert datetime.fromisoformat(ends).timestamp() - it.clock.now().wall == pytest.approx(LASTS + ahead, abs=5)


def test_an_alert_has_identity_and_next_step(fed):
    """Labels that identify it, annotations for the person who gets it."""
    it, receiver = fed
    it.diagnosed(finding())
    (alert,) = receiver.arrived[0]

    assert {
        "alertname": "AckscopeFinding",
        "severity": "warning",
        "cluster": "shop",
        "rule": "no-consumer",
        "kind": "queue",
        "vhost": "/",
        "name": "orders",
        "team": "a",
    } == alert["labels"]
    assert alert["annotations"]["next_step"]
    assert alert["annotations"]["steps"].startswith("1. ")
    assert "https://ackscope.example/runbook?rule=no-consumer" == alert["annotations"]["runbook_url"]
    assert "https://ackscope.example" == alert["generatorURL"]


def test_what_was_missed_is_one_alert(fed):
    """Alertmanager does not notify of alerts that are over when they arrive."""
    it, receiver = fed
    receiver.away()
    it.diagnosed(finding())
    it.diagnosed(later=60)
    receiver.up()
    it.diagnosed(later=60)
    (alert,) = receiver.arrived[0]

    assert ("AckscopeMissedFindings", "warning") == (alert["labels"]["alertname"], alert["labels"]["severity"])
    assert "1 finding began and ended while Alertmanager could not be reached" == alert["annotations"]["summary"]
    assert alert["endsAt"] > it.clock.now().iso()
