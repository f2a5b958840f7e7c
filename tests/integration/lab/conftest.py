import os
import time
from contextlib import suppress
from pathlib import Path

import pika
import pika.exceptions
import pytest
import requests


@pytest.fixture
def wait_until():
    """Poll until `look()` gives something true, and return it; the broker's statistics come every 5 s."""

    def _wait(look, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.2)
        return seen

    return _wait


@pytest.fixture
def queues():
    """The queues of a node by name, as its management API lists them."""

    def _queues(node):
        answer = requests.get(f"{node.management}/api/queues", timeout=10)
        answer.raise_for_status()
        return {queue["name"]: queue for queue in answer.json()}

    return _queues


@pytest.fixture
def client_names():
    """The names that connections of a node gave themselves."""

    def _names(node):
        answer = requests.get(f"{node.management}/api/connections", timeout=10)
        answer.raise_for_status()
        return {connection.get("client_properties", {}).get("connection_name") for connection in answer.json()} - {None}

    return _names


@pytest.fixture
def channel_of():
    """A channel to a node, closed afterwards."""
    opened = []

    def _channel(node):
        connection = pika.BlockingConnection(pika.URLParameters(node.amqp))
        opened.append(connection)
        return connection.channel()

    yield _channel
    for connection in opened:
        # A node that a test killed has taken its connections along.
        with suppress(pika.exceptions.AMQPError):
            connection.close()


@pytest.fixture
def processes_of():
    """Every process that names a folder in its environment or command line, from /proc, without the lab's help."""

    def _processes(folder):
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in text:
                found.append((int(entry.name), (entry / "comm").read_text().strip()))
        return found

    return _processes
