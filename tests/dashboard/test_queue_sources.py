"""What the page of one queue may not claim: where messages come from, and a past that nobody recorded."""

from datetime import timedelta

import pandas as pd
import pytest

from dashboard.frames import consumer_rows, flow_graph, queue_history, vhost_traffic
from dashboard.frames.vhost_traffic import PublishingClient, VhostTraffic
from tests.dashboard.test_queue_frames import AXIS, NOW, line, lists


def test_publishers_that_may_feed_a_queue_are_ordered_by_their_rate() -> None:
    """The nearest to the rate of the queue is first, and the note says that nothing is sure."""
    bindings = pd.DataFrame(
        [("/", "in", "orders", "queue", "paid")],
        columns=["vhost", "source", "destination", "destination_type", "routing_key"],
    )
    clients = tuple(PublishingClient(name, rate, 1) for name, rate in (("far", 90.0), ("near", 8.1), ("none", 1.0)))
    flowing = VhostTraffic(clients=clients, received={"in": 50.0, "other": 40.0})
    found = flow_graph.of_queue("/", "orders", bindings, consumer_rows.none(), (), flowing, published=8.0)

    assert ["publisher:near", "publisher:none", "publisher:far"] == list(found.columns[0])
    assert not found.sure
    assert ["messages may come from them", "The first is the one whose rate"] == [
        part for part in ("messages may come from them", "The first is the one whose rate") if part in found.notes[0]
    ]


@pytest.mark.parametrize(
    ("counted", "received", "handed_on", "routed", "shown"),
    [
        (9, 12.0, 8, 8.0, "12.0/s in, 8.0/s out"),
        (9, 12.0, None, None, "12.0/s in, 0/s out"),
        (9, 12.0, 8, None, "12.0/s received"),
        (9, None, 8, None, "rate unknown"),
    ],
)
def test_an_exchange_shows_what_it_hands_on(
    counted: int, received: float | None, handed_on: int | None, routed: float | None, shown: str
) -> None:
    """Less out than in means that messages reach no queue; the counter is missing until the first copy."""
    channels, connections, _ = lists(shop=1.0)
    rows = [("/", "in", "direct", counted, received, handed_on, routed), ("/", "", "direct", 9, 1.0, 9, 1.0)]
    exchanges = pd.DataFrame(rows, columns=list(vhost_traffic.EXCHANGE_COLUMNS))
    found = vhost_traffic.traffic("/", channels, connections, exchanges)

    assert ("direct", shown) == flow_graph.exchange_details(found, "in")


@pytest.mark.parametrize(("oldest", "begins"), [(420.0, 8), (60.0, 5), (4000.0, 15)])
def test_without_history_the_axis_begins_at_the_first_reading(oldest: float, begins: int) -> None:
    """At its minute, but the axis has at least 5 minutes, and does not begin before the range."""
    axis = queue_history.since_readings([line("ready", (oldest, 3.0), (0, 4.0))], NOW, AXIS)

    assert (AXIS.end - timedelta(minutes=begins), AXIS.end) == (axis.start, axis.end)
    assert AXIS == queue_history.since_readings([], NOW, AXIS)
