"""Triage of a real finding, over a restart of the exporter."""

import pytest
import requests

from tests.integration.exporter.running import Management, eventually, exporting

pytestmark = pytest.mark.integration

QUEUE = "exporter-test.triage"
# No early finding: it would become more severe later, and then a mute no longer covers it.
QUICK = {"consumers": {"no_consumer_growing": 1, "no_consumer_quiet": 1}, "early": 86400}


@pytest.fixture
def node(lab_43):
    """A node with a queue that nobody consumes."""
    management = Management(lab_43.nodes[0])
    management.declare(QUEUE, "classic")
    management.publish(QUEUE, 3)
    yield lab_43.nodes[0]
    for prefix in ("exporter-test.", "ackscope.probe."):
        management.sweep(prefix)


def entry(exporter):
    """The finding about the queue, if there is one."""
    return next((it for it in exporter.cluster("findings")["findings"] if it["subject"]["name"] == QUEUE), None)


def test_a_muted_finding_is_muted_after_a_restart(node, tmp_path):
    """Everybody sees it, in the API and in /metrics; it is still a finding."""
    store = {"file": str(tmp_path / "triage.json")}
    settings = {"triage": store, "diagnosis": QUICK, "probes": {"enabled": ["confirm"]}}
    with exporting(node, tmp_path, **settings) as exporter:
        found = eventually(lambda: entry(exporter))
        change = {"cluster": "shop", "rule": found["rule"], "subject": found["subject"], "by": "ann"}
        url = f"{exporter.url}/api/v1/triage"
        foreign = requests.post(url, json=change, headers={"Origin": "http://evil.example"}, timeout=10)
        answer = requests.post(url, json={**change, "mute_seconds": 3600, "owner": "bob"}, timeout=10)
        before = entry(exporter)["triage"]
    with exporting(node, tmp_path, **settings) as exporter:
        after = eventually(lambda: entry(exporter))["triage"]
        eventually(lambda: exporter.value('ackscope_muted_findings{cluster="shop"}') == 1)
        text = exporter.get("/metrics").text

    assert (403, "scripts of other sites are not answered\n") == (foreign.status_code, foreign.text)
    assert (200, "ann", "bob", True) == (answer.status_code, before["muted_by"], before["owner"], before["muted"])
    assert before == after
    assert f'name="{QUEUE}"' in text
