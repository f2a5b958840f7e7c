"""An exporter that discovers its clusters, beside a real broker and a stand-in of the Kubernetes API."""

import pytest
import requests

from tests.integration.exporter.discovering import POLLED, REFUSED, WATCHED, Discovering, Users, name_services
from tests.integration.exporter.running import eventually
from tests.kube_api import STARTING, kube_api, rabbitmq
from tests.unit.exporter.made import promtool

pytestmark = pytest.mark.integration


@pytest.fixture
def node(lab_43, monkeypatch):
    """A node that has the names of all services."""
    node = lab_43.nodes[0]
    name_services(node, monkeypatch)
    return node


@pytest.fixture
def users(node):
    """The users; they go with the test."""
    users = Users(node)
    yield users
    users.remove()


@pytest.fixture
def api(tmp_path):
    """The Kubernetes API, without objects."""
    with kube_api(tmp_path / "kube") as api:
        yield api


@pytest.fixture
def exporter(tmp_path, api, node):
    """An exporter that runs."""
    running = Discovering(tmp_path, api)
    yield running
    running.app.stop()


def test_clusters_come_rotate_their_passwords_and_go(exporter, api, users, caplog):
    """Two objects come, a password rotates, the watch breaks, one goes; no restart, and nothing on the broker."""
    caplog.set_level("INFO", "exporter")
    before = users.names("queues"), users.names("vhosts")
    assert "ready\n" == exporter.get("/-/ready")
    for name in ("shop", "depot"):
        users.put(f"default_user_{name}", "hush-one")
        api.secret("rabbits", f"{name}-default-user", username=f"default_user_{name}", password="hush-one")
        api.put(rabbitmq("rabbits", name))
    api.put(rabbitmq("elsewhere", "other"))
    exporter.has(*(line.format(name) for name in ("shop", "depot") for line in (POLLED, WATCHED)))
    whole = exporter.get()
    poller = exporter.app._pollers.pollers["depot"]

    users.put("default_user_shop", "hush-two")
    exporter.has(REFUSED, POLLED.format("depot"))
    api.secret("rabbits", "shop-default-user", username="default_user_shop", password="hush-two")
    exporter.has(POLLED.format("shop"))

    api.break_watches()
    api.put(rabbitmq("rabbits", "vault", status={}))
    api.put(rabbitmq("rabbits", "new", conditions=STARTING, creationTimestamp="2999-01-01T00:00:00Z"))
    eventually(lambda: {"shop": None, "depot": None, "vault": "no-secret", "new": "starting"} == exporter.objects())
    api.put(rabbitmq("rabbits", "shop", deletionTimestamp="2026-01-01T00:00:00Z"))
    eventually(lambda: 'cluster="shop",family' not in exporter.get())
    api.compact()
    api.delete("rabbits", "shop")
    eventually(lambda: exporter.objects().keys() == {"depot", "vault", "new"})
    exporter.has(POLLED.format("depot"), "ackscope_discovery_success 1")
    findings = exporter.get("/api/v1/findings")

    assert exporter.app._pollers.pollers["depot"] is poller
    assert "" == promtool(whole)
    assert '"cluster":"depot"' in findings
    assert '"cluster":"shop"' not in findings
    assert before == (users.names("queues"), users.names("vhosts"))
    assert 1 == caplog.text.count("'reason': 'no-secret'")
    assert "hush" not in caplog.text + whole + exporter.get("/api/v1/discovery")


def test_a_reload_keeps_discovered_clusters_and_a_configured_one_precedes(exporter, api, node, users):
    """Discovery can also be switched off by a reload; then its clusters go."""
    users.put("default_user_shop", "hush-one")
    api.secret("rabbits", "shop-default-user", username="default_user_shop", password="hush-one")
    api.put(rabbitmq("rabbits", "shop"))
    exporter.has(POLLED.format("shop"))
    poller = exporter.app._pollers.pollers["shop"]

    exporter.write(refresh="2s")
    reported = requests.post(f"{exporter.app.url}/-/reload", timeout=20).text
    eventually(lambda: exporter.objects() == {"shop": None} and exporter.app._discovery.complete)
    same = exporter.app._pollers.pollers["shop"] is poller

    exporter.write({"shop": {"management": {"url": node.management}}}, refresh="2s")
    replaced = requests.post(f"{exporter.app.url}/-/reload", timeout=20).text
    eventually(lambda: exporter.objects() == {"shop": "configured"})
    exporter.has(POLLED.format("shop"))

    exporter.write(enabled=False)
    off = requests.post(f"{exporter.app.url}/-/reload", timeout=20)

    assert same
    assert "reloaded: clusters unchanged; probes unchanged\n" == reported
    assert "reloaded: clusters new or moved: shop; probes unchanged\n" == replaced
    # Without clusters, modules and discovery there is nothing to do: such a file is refused.
    assert 500 == off.status_code
