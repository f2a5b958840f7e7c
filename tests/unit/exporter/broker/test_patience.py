"""Long lists are waited for."""

import time

import pytest

from ackscope.errors import Unreachable
from exporter.broker import fetch
from exporter.broker.client import ManagementClient
from exporter.broker.patience import LONGEST_SECONDS, Patience
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve

LIST, OTHER = "/api/queues", "/api/bindings"


def test_more_is_given_where_time_ran_out():
    """To that list alone; once it came, three times what it took, and never less than the settings say."""
    patience = Patience(10.0)
    patience.failed(LIST, 10.01)

    assert [LONGEST_SECONDS, 10.0] == [patience.limit(LIST), patience.limit(OTHER)]
    patience.answered(LIST, 12.0)
    assert 36.0 == patience.limit(LIST)
    patience.answered(LIST, 48.0)
    assert LONGEST_SECONDS == patience.limit(LIST)
    patience.answered(LIST, 0.2)
    assert 10.0 == patience.limit(LIST)


def test_what_fails_at_once_is_not_waited_for_longer():
    """A connection that was refused, or not made in its own, shorter time."""
    patience = Patience(10.0)
    patience.failed(LIST, 5.0)

    assert 10.0 == patience.limit(LIST)


def test_a_limit_of_the_user_beyond_ours_stays():
    """`timeout` may be ten minutes."""
    patience = Patience(600.0)
    patience.failed(LIST, 600.0)

    assert 600.0 == patience.limit(LIST)


def test_a_broker_that_is_slow_is_read_in_the_end():
    """Its totals, and lists; what tells whether it hangs has the time of the settings each time."""

    def slowly(request):
        time.sleep(0.6)
        json([{"name": "q"}])(request)

    with serve({LIST: slowly, OTHER: slowly}) as server:
        client = ManagementClient(ManagementSettings(url=server.url, timeout=0.3))
        for ask in (lambda: list(fetch.totals(client)), lambda: fetch.one(client, OTHER, patient=True)):
            with pytest.raises(Unreachable, match=r"no full answer within 0\.3 s"):
                ask()
            assert [{"name": "q"}] == ask()
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"no full answer within 0\.3 s"):
                fetch.one(client, OTHER)
        client.close()
