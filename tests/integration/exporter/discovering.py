"""An exporter that discovers its clusters beside a Kubernetes API; one node of the lab is the broker of all of them."""

import socket
from urllib.parse import urlsplit

import requests
import yaml

from ackscope.clock import SystemClock
from ackscope.settings import load
from exporter.app import App
from exporter.settings import ExporterSettings
from tests.integration.exporter.running import eventually

REFUSED = 'ackscope_poll_success{cluster="shop",family="overview"} 0'
POLLED = 'ackscope_poll_success{{cluster="{}",family="overview"}} 1'
WATCHED = 'ackscope_discovered_object{{cluster="{0}",namespace="rabbits",object="{0}",reason=""}} 1'


def name_services(node, monkeypatch):
    """Give a node the names of all services in the namespace `rabbits`, in the resolver of this process only."""
    real = socket.getaddrinfo
    ports = {15672: urlsplit(node.management).port, 5672: urlsplit(node.amqp).port}

    def resolve(host, port, *words, **more):
        if str(host).endswith(".rabbits.svc"):
            return real("127.0.0.1", ports[port], *words, **more)
        return real(host, port, *words, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


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
