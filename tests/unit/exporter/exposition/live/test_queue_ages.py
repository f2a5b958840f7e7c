import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Part, Queue, Snapshot
from diagnosis.queue_age import QueueAges
from diagnosis.window import Window
from exporter.exposition.cardinality.selection import ClusterSelection, SelectedObjects, Selection
from exporter.exposition.live import queue_ages
from exporter.runtime.state import ClusterState


def at(seconds):
    """Return the time at this second."""
    return Instant(wall=1_800_000_000.0 + seconds, mono=1000.0 + seconds)


def queue(name, seconds, left=0.0):
    """A queue with 10 messages a second, and this share of them acknowledged."""
    published, acked = 10 * seconds, int(10 * seconds * left)
    counters = MessageStats(publish=published, ack=acked)
    return Queue(vhost="/", name=name, type="classic", messages=max(0, published - acked), stats=counters)


def state_of(*frames):
    """Return what is known after polls of these lists, 5 s apart."""
    ages, window, known = QueueAges(), Window.empty("shop"), {}
    for number, queues in enumerate(frames):
        moment = at(5 * number)
        window = window.add(Snapshot(cluster="shop", taken=moment, queues=Part(value=queues, at=moment)))
        known = ages.add(window.latest)
    return ClusterState(window=window, queue_ages=known)


def values(state, *shown):
    """Return (metric, labels...) -> value for the selected queues."""
    selection = Selection(clusters={"shop": ClusterSelection(queues=SelectedObjects(shown=shown))})
    found = queue_ages.collect({"shop": state}, selection)
    return {(it.name, *it.labels.values()): it.value for metric in found for it in metric.samples}


def film(left):
    """A queue that was declared after the first poll."""
    return ((), *((queue("orders", second, left),) for second in range(5, 65, 5)))


def test_a_queue_that_stands_still_has_an_age_and_nothing_else():
    """Nothing left it, so there is no sojourn time, and it does not drain."""
    seen = values(state_of(*film(0.0)), queue("orders", 60))

    assert {"lower", "upper"} == {bound for _, _, _, _, bound in seen}
    assert {"ackscope_queue_head_age_seconds"} == {name for name, *_ in seen}
    assert seen["ackscope_queue_head_age_seconds", "shop", "/", "orders", "lower"] <= 60
    assert seen["ackscope_queue_head_age_seconds", "shop", "/", "orders", "upper"] >= 60


def test_what_left_has_a_sojourn_time_by_percentile():
    """Half of what came has left."""
    seen = values(state_of(*film(0.5)), queue("orders", 60))
    shares = {labels[3] for name, *labels in seen if name == "ackscope_queue_sojourn_seconds"}

    assert {"50", "99"} == shares


def test_a_queue_that_drains_has_a_time_to_empty():
    """200 messages, 10 a second fewer."""
    frames = [
        (Queue(vhost="/", name="q", type="quorum", messages=500 - 50 * step, stats=MessageStats(ack=50 * step)),)
        for step in range(7)
    ]
    seen = values(state_of(*frames), frames[-1][0])

    assert pytest.approx(20, rel=0.2) == seen["ackscope_queue_time_to_empty_seconds", "shop", "/", "q"]


def test_only_selected_queues_have_series():
    """The cardinality limit counts."""
    assert {} == values(state_of(*film(0.0)))


def test_an_upper_bound_that_is_unknown_is_missing():
    """Absent is not zero."""
    state = state_of(*([(queue("orders", 60),)] * 3))
    seen = values(state, queue("orders", 60))

    assert {("ackscope_queue_head_age_seconds", "shop", "/", "orders", "lower"): 10.0} == seen


def test_before_the_first_poll_there_is_nothing():
    """Nor after one that failed."""
    assert {} == values(ClusterState(window=Window.empty("shop")), queue("orders", 60))
