"""An exporter that discovers its clusters, beside a real broker and a stand-in of the Kubernetes API."""

import socket
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from ackscope.clock import SystemClock
from ackscope.settings import load
from exporter.app import App
from exporter.settings import ExporterSettings
from tests.integration.exporter.running import eventually
from tests.kube_api import STARTING, kube_api, rabbitmq
from tests.unit.exporter.made import promtool

pytestmark = pytest.mark.integration

REFUSED = 'ackscope_poll_success{cluster="shop",family="overview"} 0'
POLLED = 'ackscope_poll_success{{cluster="{}",family="overview"}} 1'
WATCHED = 'ackscope_discovered_object{{cluster="{0}",namespace="rabbits",object="{0}",reason=""}} 1'


class Users:
    """Default users of the clusters on the lab's only node, which is the broker of all of them."""

    def __init__(self, node):
        parts = urlsplit(node.management)
        self._url = f"http://{parts.hostname}:{parts.port}/api"
        self._auth = (parts.username, parts.password)
        self.made = set()

    def put(self, name, password):
        """Create an administrator with permissions on `/`, or change its password."""
        self.made.add(name)
        body = {"password": password, "tags": "administrator"}
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        for path, document in ((f"users/{name}", body), (f"permissions/%2F/{name}", rights)):
            requests.put(f"{self._url}/{path}", json=document, auth=self._auth, timeout=10).raise_for_status()

    def names(self, what):
        """Names of the queues, or of the virtual hosts."""
        return {it["name"] for it in requests.get(f"{self._url}/{what}", auth=self._auth, timeout=10).json()}

    def remove(self):
        """Delete all of them."""
        for name in self.made:
            requests.delete(f"{self._url}/users/{name}", auth=self._auth, timeout=10)


@pytest.fixture
def node(lab_43, monkeypatch):
    """A node that has the names of all services: only the resolver of this process is told so."""
    node, real = lab_43.nodes[0], socket.getaddrinfo
    ports = {15672: urlsplit(node.management).port, 5672: urlsplit(node.amqp).port}

    def resolve(host, port, *words, **more):
        if str(host).endswith(".rabbits.svc"):
            return real("127.0.0.1", ports[port], *words, **more)
        return real(host, port, *words, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
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


class Discovering:
    """An exporter in this process, without clusters in its file."""

    def __init__(self, folder, api):
        self._path, self._api = folder / "ackscope.yml", api
        self.write()
        self.app = App(self._read(), SystemClock(), self._read)
        self.app.start()

    def write(self, clusters=None, **settings):
        """Write its file."""
        document = {
            "listen": "127.0.0.1:0",
            "clusters": clusters or {},
            "poll": {"interval": "1s"},
            "discovery": self._api.settings(namespaces=["rabbits"], **settings),
        }
        self._path.write_text(yaml.safe_dump(document))

    def _read(self):
        return load(ExporterSettings, self._path, {})

    def get(self, path="/metrics"):
        """The text of a page."""
        return requests.get(self.app.url + path, timeout=10).text

    def has(self, *samples):
        """Wait until all of these samples are shown at the same time."""

        def all_there():
            text = self.get()
            return all(f"{sample}\n" in text for sample in samples)

        eventually(all_there)

    def objects(self):
        """Name -> why the object is not watched."""
        found = requests.get(f"{self.app.url}/api/v1/discovery", timeout=10).json()["objects"]
        return {it["name"]: it["reason"] for it in found}


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
