"""Timeouts of long lists."""

import time

import pytest

from ackscope.errors import Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.cost_model import MAX_TIMEOUT_SECONDS, AdaptiveTimeout
from exporter.broker.fetch import fetch_totals
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve

LIST, OTHER = "/api/queues", "/api/bindings"


def test_a_timeout_raises_the_next_one():
    """Only for that path; after a success it is three times the response time, but at least the configured timeout."""
    timeout = AdaptiveTimeout(10.0)
    timeout.record_failure(LIST, 10.01)

    assert [MAX_TIMEOUT_SECONDS, 10.0] == [timeout.timeout_for(LIST), timeout.timeout_for(OTHER)]
    timeout.record_success(LIST, 12.0)
    assert 36.0 == timeout.timeout_for(LIST)
    timeout.record_success(LIST, 48.0)
    assert MAX_TIMEOUT_SECONDS == timeout.timeout_for(LIST)
    timeout.record_success(LIST, 0.2)
    assert 10.0 == timeout.timeout_for(LIST)


def test_an_immediate_failure_does_not_raise_the_timeout():
    """A refused connection, or one that was not established within the shorter connect timeout."""
    timeout = AdaptiveTimeout(10.0)
    timeout.record_failure(LIST, 5.0)

    assert 10.0 == timeout.timeout_for(LIST)


def test_a_configured_timeout_above_the_maximum_is_respected():
    """`timeout` may be ten minutes."""
    timeout = AdaptiveTimeout(600.0)
    timeout.record_failure(LIST, 600.0)

    assert 600.0 == timeout.timeout_for(LIST)


def test_a_slow_broker_is_read_eventually():
    """Totals and lists are; requests without an adaptive timeout always get the configured one."""

    def slowly(request):
        time.sleep(0.6)
        json([{"name": "q"}])(request)

    with serve({LIST: slowly, OTHER: slowly}) as server:
        client = ManagementClient(ManagementSettings(url=server.url, timeout=0.3))
        for ask in (lambda: list(fetch_totals(client)), lambda: client.get(OTHER, adaptive=True)):
            with pytest.raises(Unreachable, match=r"no full answer within 0\.3 s"):
                ask()
            assert [{"name": "q"}] == ask()
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"no full answer within 0\.3 s"):
                client.get(OTHER)
        client.close()
