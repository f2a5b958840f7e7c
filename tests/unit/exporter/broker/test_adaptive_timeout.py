"""Long lists are waited for."""

import time

import pytest

from ackscope.errors import Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.cost_model import MAX_TIMEOUT_SECONDS, AdaptiveTimeout
from exporter.broker.fetch import fetch_totals
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve

LIST, OTHER = "/api/queues", "/api/bindings"


def test_more_is_given_where_time_ran_out():
    """To that list alone; once it came, three times what it took, and never less than the settings say."""
    timeout = AdaptiveTimeout(10.0)
    timeout.record_failure(LIST, 10.01)

    assert [MAX_TIMEOUT_SECONDS, 10.0] == [timeout.timeout_for(LIST), timeout.timeout_for(OTHER)]
    timeout.record_success(LIST, 12.0)
    assert 36.0 == timeout.timeout_for(LIST)
    timeout.record_success(LIST, 48.0)
    assert MAX_TIMEOUT_SECONDS == timeout.timeout_for(LIST)
    timeout.record_success(LIST, 0.2)
    assert 10.0 == timeout.timeout_for(LIST)


def test_what_fails_at_once_is_not_waited_for_longer():
    """A connection that was refused, or not made in its own, shorter time."""
    timeout = AdaptiveTimeout(10.0)
    timeout.record_failure(LIST, 5.0)

    assert 10.0 == timeout.timeout_for(LIST)


def test_a_limit_of_the_user_beyond_ours_stays():
    """`timeout` may be ten minutes."""
    timeout = AdaptiveTimeout(600.0)
    timeout.record_failure(LIST, 600.0)

    assert 600.0 == timeout.timeout_for(LIST)


def test_a_broker_that_is_slow_is_read_in_the_end():
    """Its totals, and lists; what tells whether it hangs has the time of the settings each time."""

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
