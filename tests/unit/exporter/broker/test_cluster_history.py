"""The last ten minutes of the cluster, from the samples of the broker."""

import pytest

from ackscope.past import NodePast
from exporter.broker.client import ManagementClient
from exporter.broker.cluster_history import AFTER_FAILURE, EVERY, PastReader, read_past
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json

NEWEST = 1_800_000_000


def samples(*values, step=5, newest=NEWEST):
    """Samples as the API returns them, the newest first."""
    marks = [{"timestamp": 1000 * (newest - step * back), "sample": each} for back, each in enumerate(values[::-1])]
    return {"rate": 1.0, "samples": marks}


def overview(**stats):
    """The answer of an overview with samples of these counters."""
    return json({"message_stats": {f"{name}_details": each for name, each in stats.items()}})


@pytest.fixture
def client(server):
    """A client of the server."""
    made = ManagementClient(ManagementSettings(url=server.url))
    yield made
    made.close()


def test_samples_are_oldest_first_by_our_clock(server, client):
    """The extremes of a node leave out the zeros before its first sample."""
    server.routes["/api/overview"] = overview(publish=samples(0, 30, 60), deliver_get=samples(0, 7, 9))
    used, free = samples(0, 900, 700), samples(0, 40, 50)
    server.routes["/api/nodes"] = json([{"name": "rabbit@a", "mem_used_details": used, "disk_free_details": free}, 5])
    past = read_past(client, 100.0)

    assert (NEWEST - 110.0, 5.0) == (past.begin, past.step)
    assert ((0, 30, 60), (0, 7, 9)) == (past.published, past.delivered)
    assert (NodePast(name="rabbit@a", mem_used=900, disk_free=40),) == past.nodes


def test_a_node_that_is_down_has_no_extremes(server, client):
    """It has a name only."""
    server.routes["/api/overview"] = overview(publish=samples(0, 30))
    server.routes["/api/nodes"] = json([{"name": "rabbit@a"}])

    assert (NodePast(name="rabbit@a"),) == read_past(client, 0.0).nodes


@pytest.mark.parametrize(
    "answer",
    [
        json({"message_stats": {"publish": 5, "publish_details": {"rate": 1.0}}}),
        json({"message_stats": []}),
        json([]),
        overview(publish=samples(1)),
        overview(publish=samples(1, 2, 3, step=10)),
        overview(publish=samples(1, "2", 3)),
    ],
    ids=["no samples", "nothing yet", "no object", "one sample", "other steps", "a gap"],
)
def test_a_broker_without_regular_samples_has_no_past(server, client, answer):
    """With rates_mode none it keeps none."""
    server.routes["/api/overview"] = answer

    assert read_past(client, 0.0) is None


def test_it_is_read_once_a_minute_and_seldom_after_a_failure(server, client):
    """The overview waits for it."""
    server.routes["/api/overview"] = overview(publish=samples(0, 30))
    server.routes["/api/nodes"] = json([])
    reader = PastReader()
    got = [reader.read(client, second, 0.0) is not None for second in (0.0, EVERY - 1, EVERY)]
    server.routes["/api/overview"] = json({"error": "x"}, 500)
    got.append(reader.read(client, 3 * EVERY, 0.0) is not None)
    server.routes["/api/overview"] = overview(publish=samples(0, 30))
    got += [reader.read(client, 3 * EVERY + after, 0.0) is not None for after in (EVERY, AFTER_FAILURE)]

    assert [True, False, True, False, False, True] == got
