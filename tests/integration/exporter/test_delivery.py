"""A fault of the lab, a real Alertmanager, a real webhook: a finding is delivered, resolved, silenced, never lost."""

import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import requests

from ackscope.clock import SystemClock
from lab.demo.alertmanager import start_alertmanager
from lab.demo.services import Services
from lab.ports import free_ports
from tests.integration.exporter.running import Management, eventually, exporting
from tests.unit.exporter.delivery.receiving import receiving

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FAULT, QUEUE = "no-consumer", "fault.no-consumer"
ROUNDS = 3
# The finding comes with the first reading that shows it; what is measured is what follows.
QUICK = {"consumers": {"no_consumer_growing": 1, "no_consumer_quiet": 1}, "early": 86400}
SETTINGS = {"diagnosis": QUICK, "probes": {"enabled": []}}


@pytest.fixture
def services(tmp_path):
    """Processes that end with the test."""
    logs = tmp_path / "logs"
    logs.mkdir()
    running = Services(logs)
    yield running
    running.stop()


@pytest.fixture
def hook():
    """A webhook."""
    with receiving() as it:
        yield it


@contextmanager
def faulty(lab):
    """The fault, in effect for as long as the block runs."""
    node = lab.nodes[0]
    where = ["--amqp", node.amqp, "--management", node.management, "--lab", str(lab.folder)]
    command = [sys.executable, "-m", "lab.faults", FAULT, *where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().startswith("{")
            yield
        finally:
            process.stdin.close()
            process.wait(60)


def alerts(hook, status):
    """Alerts about the fault that Alertmanager sent to the webhook, in this state; its queue is deleted after it."""
    found = [alert for each in hook.arrived for alert in each.get("alerts", ())]
    about = [it for it in found if (it["labels"].get("rule"), it["labels"].get("name")) == (FAULT, QUEUE)]
    return [it for it in about if it["status"] == status]


def present(exporter):
    """The finding about the fault, once it is one that is delivered."""
    about = [it for it in exporter.cluster("findings")["findings"] if it["subject"]["name"] == QUEUE]
    return next((it for it in about if it["rule"] == FAULT and it["severity"] != "info"), None)


def to_alertmanager(listen, folder):
    """Settings of an exporter that delivers to it."""
    receiver = {"alertmanager": {"url": f"http://{listen}", "refresh": "1s"}}
    return {"delivery": {"directory": str(folder / "delivery"), "receivers": {"pager": receiver}, "settle": "5s"}}


def test_a_fault_reaches_the_webhook_behind_alertmanager_and_is_resolved(lab_43, services, hook, tmp_path):
    """Round after round; how many seconds it took is printed."""
    (port,) = free_ports(1)
    listen = f"127.0.0.1:{port}"
    start_alertmanager(services, tmp_path / "alertmanager", listen=listen, webhook=hook.url)
    started, delivered, resolved = [], [], []
    with exporting(lab_43.nodes[0], tmp_path, **SETTINGS, **to_alertmanager(listen, tmp_path)) as exporter:
        for number in range(1, ROUNDS + 1):
            with faulty(lab_43):
                began = time.monotonic()
                eventually(lambda: present(exporter))
                seen = time.monotonic()
                eventually(lambda number=number: len(alerts(hook, "firing")) == number)
                now = time.monotonic()
                started.append(now - began)
                delivered.append(now - seen)
            ended = time.monotonic()
            eventually(lambda number=number: len(alerts(hook, "resolved")) == number, 120)
            resolved.append(time.monotonic() - ended)
    for name, values in (("fault to webhook", started), ("finding to webhook", delivered), ("end", resolved)):
        print(f"{name}: median {statistics.median(values):.1f} s, worst {max(values):.1f} s, {ROUNDS} rounds")
    alert = alerts(hook, "firing")[0]

    assert {"alertname": "AckscopeFinding", "cluster": "shop", "rule": FAULT, "kind": "queue", "vhost": "/"} == {
        name: value for name, value in alert["labels"].items() if name not in {"severity", "name"}
    }
    assert alert["annotations"]["next_step"]
    assert alert["annotations"]["summary"]
    assert "diagnosis/catalogue/no-consumer.md" == alert["annotations"]["runbook_url"]


def test_a_silence_of_alertmanager_mutes_the_finding(lab_43, services, hook, tmp_path):
    """For all receivers, with the name and the reason; when it is deleted, the finding counts again."""
    (port,) = free_ports(1)
    listen = f"127.0.0.1:{port}"
    start_alertmanager(services, tmp_path / "alertmanager", listen=listen, webhook=hook.url)
    settings = to_alertmanager(listen, tmp_path)
    with receiving() as direct:
        settings["delivery"]["receivers"]["direct"] = {"webhook": {"url": direct.url}}
        with exporting(lab_43.nodes[0], tmp_path, **SETTINGS, **settings) as exporter, faulty(lab_43):
            eventually(lambda: direct.events() == [("start", QUEUE)])
            eventually(lambda: alerts(hook, "firing"))
            now = datetime.fromtimestamp(SystemClock().now().wall, UTC)
            silence = {
                "matchers": [{"name": "rule", "value": FAULT, "isRegex": False, "isEqual": True}],
                "startsAt": now.isoformat(),
                "endsAt": (now + timedelta(hours=1)).isoformat(),
                "createdBy": "ann",
                "comment": "planned migration",
            }
            answer = requests.post(f"http://{listen}/api/v2/silences", json=silence, timeout=10)
            answer.raise_for_status()
            eventually(lambda: (present(exporter)["triage"] or {}).get("muted"))
            muted = present(exporter)["triage"]
            eventually(lambda: direct.events()[1:] == [("resolve", QUEUE)])
            alone = requests.get(f"http://{listen}/api/v2/alerts", timeout=10).json()
            requests.delete(f"http://{listen}/api/v2/silence/{answer.json()['silenceID']}", timeout=10)
            eventually(lambda: not present(exporter)["triage"])
            eventually(lambda: direct.events()[2:] == [("start", QUEUE)])

    assert ("ann in Alertmanager", "planned migration") == (muted["muted_by"], muted["mute_reason"])
    assert "muted" == direct.arrived[1]["events"][0]["reason"]
    assert ["suppressed"] == [it["status"]["state"] for it in alone]


def test_an_away_receiver_gets_every_finding_once_also_after_a_restart(lab_43, hook, tmp_path):
    """What lasts starts, what came and went is in one summary; the exporter is restarted meanwhile."""
    management = Management(lab_43.nodes[0])
    delivery = {
        "directory": str(tmp_path / "delivery"),
        "receivers": {"hook": {"webhook": {"url": hook.url}}},
        "routes": [{"receiver": "hook", "severities": ["critical", "warning", "info"], "rules": [FAULT]}],
        "settle": "8s",
    }
    hook.away()

    def found(exporter):
        return {it["subject"]["name"] for it in exporter.cluster("findings")["findings"]}

    try:
        with exporting(lab_43.nodes[0], tmp_path, **SETTINGS, delivery=delivery) as exporter:
            for name in ("exporter-test.lasts", "exporter-test.short"):
                management.declare(name, "classic")
                management.publish(name, 3)
            eventually(lambda: {"exporter-test.lasts", "exporter-test.short"} <= found(exporter))
            eventually(lambda: exporter.value('ackscope_delivery_failed_total{receiver="hook"}') > 1)
            management.sweep("exporter-test.short")
            eventually(lambda: "exporter-test.short" not in found(exporter))
        with exporting(lab_43.nodes[0], tmp_path, **SETTINGS, delivery=delivery) as exporter:
            eventually(lambda: "exporter-test.lasts" in found(exporter))
            eventually(lambda: exporter.value('ackscope_delivery_waiting_findings{receiver="hook"}') == 2)
            hook.up()
            eventually(lambda: exporter.value('ackscope_delivery_waiting_findings{receiver="hook"}') == 0)
        with exporting(lab_43.nodes[0], tmp_path, **SETTINGS, delivery=delivery) as exporter:
            eventually(lambda: "exporter-test.lasts" in found(exporter))
            management.sweep("exporter-test.")
            eventually(lambda: hook.events()[2:])
    finally:
        management.sweep("exporter-test.")

    assert {("start", "exporter-test.lasts"), ("missed", "exporter-test.short")} == set(hook.events()[:2])
    assert [("resolve", "exporter-test.lasts")] == hook.events()[2:]
