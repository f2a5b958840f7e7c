"""Fixtures: a test server and a client of it."""

import pytest

from exporter.broker.client import ManagementClient
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import serve


@pytest.fixture
def server():
    """A server without routes."""
    with serve({}) as running:
        yield running


@pytest.fixture
def client(server):
    """A client of that server."""
    client = ManagementClient(ManagementSettings(url=server.url))
    yield client
    client.close()
