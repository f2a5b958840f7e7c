"""An exporter as users run it: a process of its own, watched from outside."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

import psutil
import requests
import yaml

DEADLINE = 60.0


def eventually(read, seconds=DEADLINE):
    """What `read` answers once it answers something true; fails after some seconds."""
    until = time.monotonic() + seconds
    while True:
        answer = read()
        if answer:
            return answer
        assert time.monotonic() < until, f"not seen within {seconds:g} s"
        time.sleep(0.2)


class Exporter:
    """A process that runs.

    Attributes:
        url: where it answers.
        landing: root of its landing files.
        document: what its file says.
    """

    def __init__(self, process, log, landing, config, document):
        self.process, self.log, self.landing = process, log, landing
        self._config, self.document = config, document
        self.url = eventually(self._address)

    def _address(self):
        assert self.process.poll() is None, self.log.read_text()
        found = re.search(r"msg=serving url=(http://\S+)", self.log.read_text())
        return found and found[1]

    def get(self, path, seconds=10):
        """One request."""
        return requests.get(self.url + path, timeout=seconds)

    def cluster(self, name):
        """The only cluster of a document of the API."""
        return self.get(f"/api/v1/{name}").json()["clusters"][0]

    def value(self, sample):
        """The value of one sample as it is written; None where it is not there."""
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(f"{sample} "):
                return float(line.rpartition(" ")[2])
        return None

    def write(self, **changes):
        """Change keys at the top of its file."""
        self.document = {**self.document, **changes}
        self._config.write_text(yaml.safe_dump(self.document))

    def reload(self):
        """Status and line of the answer to POST."""
        answer = requests.post(self.url + "/-/reload", timeout=20)
        return answer.status_code, answer.text

    def hang_up(self):
        """SIGHUP."""
        self.process.send_signal(signal.SIGHUP)

    def children(self):
        """The processes that it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self):
        """SIGTERM; the exit code, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20), time.monotonic() - began


@contextmanager
def exporting(node, folder, interval="1s", environ=None, **more):
    """Run an exporter beside a node for as long as the block runs; its files go into a folder.

    `environ` adds variables, `more` keys at the top of its file.
    """
    config, log, landing = folder / "ackscope.yml", folder / "exporter.log", folder / "landing"
    shop = {"management": {"url": node.management}, "amqp": {"url": node.amqp}}
    document = {
        "listen": "127.0.0.1:0",
        "clusters": {"shop": shop},
        "poll": {"interval": interval, "budget": 0.5},
        "landing": {"directory": str(landing), "rotate": "1s"},
        **more,
    }
    config.write_text(yaml.safe_dump(document))
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "ackscope", "exporter", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**os.environ, **(environ or {})},
        )
    try:
        yield Exporter(process, log, landing, config, document)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(20)


class Management:
    """The management API of a node, to put queues there and take them away."""

    def __init__(self, node):
        parts = urlsplit(node.management)
        self._base = f"http://{parts.hostname}:{parts.port}/api"
        self._session = requests.Session()
        self._session.auth = (parts.username, parts.password)

    def declare(self, name, queue_type):
        """Make a durable queue."""
        body = {"durable": True, "arguments": {"x-queue-type": queue_type}}
        self._session.put(f"{self._base}/queues/%2F/{quote(name)}", json=body, timeout=10).raise_for_status()

    def publish(self, name, times):
        """Put messages into a queue."""
        body = {"properties": {}, "routing_key": name, "payload": "x", "payload_encoding": "string"}
        for _ in range(times):
            answer = self._session.post(f"{self._base}/exchanges/%2F/amq.default/publish", json=body, timeout=10)
            assert answer.json()["routed"]

    def shows_held(self):
        """Whether the broker's figures, of queues and of channels, tell by now that messages are held."""
        answers = [self._session.get(f"{self._base}/{what}", timeout=10).json() for what in ("queues", "channels")]
        return all(any(item.get("messages_unacknowledged", 0) for item in answer) for answer in answers)

    def queues(self):
        """The names of all queues."""
        return [queue["name"] for queue in self._session.get(f"{self._base}/queues", timeout=10).json()]

    def sweep(self, *beginnings):
        """Delete the queues whose names begin so."""
        for name in self.queues():
            if name.startswith(beginnings):
                self._session.delete(f"{self._base}/queues/%2F/{quote(name)}", timeout=10)
