from hypothesis import given
from hypothesis import strategies as st

from ackscope.counters import MessageStats
from ackscope.snapshot import Consumer, Part, Queue, Snapshot
from diagnosis.series import last
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import moment


@st.composite
def views(draw):
    """Return a view of one queue whose counter rises, stays or falls, and that may be away, 5 s after 5 s."""
    detailed, known, snapshots = draw(st.booleans()), Queue(vhost="/", name="orders"), []
    for number in range(draw(st.integers(1, 12))):
        at = moment(5 * number)
        step = draw(st.sampled_from(["same", "same", "rises", "falls", "gone"]))
        if step in ("rises", "falls"):
            published = (known.stats.publish or 0) + number + 1 if step == "rises" else None
            known = Queue(
                vhost="/",
                name="orders",
                stats=MessageStats(publish=published),
                consumers=0,
                details_at=at if detailed else None,
            )
        listed = () if step == "gone" else (known,)
        snapshots.append(Snapshot(cluster="test", taken=at, queues=Part(value=listed, at=at, seconds=0.1)))
    return View(Window("test", snapshots=tuple(snapshots)), (), snapshots[-1].taken, Thresholds())


@given(views())
def test_the_recent_readings_are_the_end_of_the_history(view):
    """Also of a queue that was away, whose counters began again, or whose statistics are read one by one."""
    for queue in view.all_queues:
        assert last(view.history(queue), view.thresholds.interval) == view.recent(queue)


@given(views())
def test_a_queue_moved_unless_an_interval_ago_its_counter_was_the_same(view):
    """One that is not known for an interval moved, too."""
    for queue in view.all_queues:
        at = view.window.latest.taken
        readings = [it for it in view.presence(queue.key) if at.since(it[0]) >= view.thresholds.interval]
        before = readings[-1][1] if readings else None
        if queue.details_at is None:
            assert view.moved(queue, "publish") == (before is None or before.stats.publish != queue.stats.publish)


def test_queues_that_may_have_consumers_of_amqp10_are_known():
    """A consumer with a channel or a prefetch has another protocol, unless it has a session."""
    listed = {
        "amqp091": {"channel_name": "peer (1)"},
        "shovel": {"prefetch_count": 10},
        "session": {"channel_name": "peer (2)", "session_number": 1},
        "unlisted": {},
    }
    consumers = tuple(Consumer(tag="c", vhost="/", queue=name, **fields) for name, fields in listed.items())
    queues = tuple(Queue(vhost="/", name=name, consumers=1) for name in [*listed, "lonely"])
    parts = {
        name: Part(value=value, at=moment(0), seconds=0.1)
        for name, value in {"queues": queues, "consumers": consumers}.items()
    }
    view = View(
        Window("test", snapshots=(Snapshot(cluster="test", taken=moment(0), **parts),)), (), moment(0), Thresholds()
    )

    assert ["session", "unlisted"] == [queue.name for queue in view.uncounted_queues]
