import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from exporter.broker.queue_store import REFRESH_SECONDS, DetailCoverage, QueueStore

VERSION = (4, 3)


def at(mono):
    """A time."""
    return Instant(wall=1.7e9 + mono, mono=mono)


def totals(name="orders", **fields):
    """The totals of a classic queue."""
    return {
        "vhost": "/",
        "name": name,
        "type": "classic",
        "state": "running",
        "node": "lab1@localhost",
        "arguments": {},
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "online": None,
        "messages": 0,
        "messages_ready": 0,
        "messages_unacknowledged": 0,
        **fields,
    }


def details(name="orders", **fields):
    """A queue whose statistics were read."""
    usual = {"type": "classic", "node": "lab1@localhost", "durable": True, "consumers": 2, "memory": 9000}
    return Queue(vhost="/", name=name, **{**usual, "stats": MessageStats(publish=7), **fields})


def store_of(*items):
    """A store with these totals."""
    store = QueueStore()
    store.put_totals(list(items), VERSION)
    return store


def test_an_unread_queue_has_totals_only():
    """Everything else is absent, including the time of its statistics."""
    (queue,) = store_of(totals(messages=3, messages_ready=2, messages_unacknowledged=1)).queues

    assert ("classic", "running", 3, 2, 1) == (
        queue.type,
        queue.state,
        queue.messages,
        queue.messages_ready,
        queue.messages_unacked,
    )
    assert (None, None, None) == (queue.details_at, queue.consumers, queue.stats.publish)


def test_statistics_stay_while_totals_change():
    """Each with its own time; message counts are those of the totals."""
    store = store_of(totals(messages=3))
    store.put_details([details(messages=1, messages_ready=1)], at(10))
    store.put_totals([totals(messages=5, messages_ready=5)], VERSION)
    (queue,) = store.queues

    assert (5, 5, 2, 7, at(10)) == (
        queue.messages,
        queue.messages_ready,
        queue.consumers,
        queue.stats.publish,
        queue.details_at,
    )


def test_statistics_do_not_replace_newer_message_counts():
    """The API's statistics lag behind its totals by some seconds."""
    store = store_of(totals(messages=3, messages_ready=3))
    store.put_details([details(messages=0, messages_ready=0)], at(10))

    assert [3] == [queue.messages for queue in store.queues]


def test_unchanged_queues_are_the_same_object():
    """And the whole list if no queue changed."""
    store = store_of(totals("a"), totals("b"), totals("c"))
    store.put_details([details("a"), details("b")], at(10))
    before = store.queues
    store.put_totals([totals("a"), totals("b"), totals("c")], VERSION)
    idle = store.queues
    store.put_totals([totals("a"), totals("b", messages=1), totals("c")], VERSION)

    assert idle is before
    assert [True, False, True] == [old is new for old, new in zip(before, store.queues, strict=True)]
    assert {("/", "b")} == store.changed


def test_unchanged_statistics_are_the_same_object():
    """For some minutes; the time of their reading is still known."""
    store = store_of(totals(), totals("b"))
    store.put_details([details(), details("b")], at(10))
    before = store.queues
    store.put_details([details(), details("b", memory=9001)], at(10 + REFRESH_SECONDS - 1))
    after, read = store.queues, dict(store.read_at)
    store.put_details([details(), details("b")], at(10 + REFRESH_SECONDS))

    assert [True, False] == [old is new for old, new in zip(before, after, strict=True)]
    assert {309.0} == set(read.values())
    assert [at(310)] * 2 == [queue.details_at for queue in store.queues]
    assert store.coverage().oldest == 310


def test_queues_appear_and_disappear_with_the_totals():
    """In the broker's order."""
    store = store_of(totals("a"), totals("c"))
    store.put_totals([totals("a"), totals("b"), totals("d")], VERSION)

    assert ["a", "b", "d"] == [queue.name for queue in store.queues]
    assert set() == store.changed


def test_statistics_of_a_queue_without_totals_are_ignored():
    """The list is consistent with one reading of the totals."""
    store = store_of(totals("a"))
    store.put_details([details("b")], at(10))

    assert ["a"] == [queue.name for queue in store.queues]


def test_a_deleted_queue_can_be_removed():
    """Even twice."""
    store = store_of(totals("a"), totals("b"))
    store.remove(("/", "a"))
    store.remove(("/", "a"))

    assert ["b"] == [queue.name for queue in store.queues]


@pytest.mark.parametrize(
    "remade", [{"type": "quorum"}, {"node": "lab2@localhost"}, {"arguments": {"x-max-length": 9}}, {"durable": False}]
)
def test_a_redeclared_queue_loses_its_old_statistics(remade):
    """Another type, node or arguments under the same name."""
    store = store_of(totals())
    store.put_details([details()], at(10))
    store.put_totals([totals(**remade)], VERSION)
    (queue,) = store.queues
    store.put_details([details()], at(20))

    assert (None, None, None) == (queue.details_at, queue.consumers, queue.stats.publish)
    assert [None] == [queue.details_at for queue in store.queues]


def test_an_added_type_argument_is_not_another_queue():
    """4.x adds it to the totals of a queue that was declared without it, but not to its statistics."""
    store = store_of(totals(arguments={"x-queue-type": "classic"}))
    store.put_details([details()], at(10))
    store.put_totals([totals(arguments={"x-queue-type": "classic"}, messages=1)], VERSION)
    (queue,) = store.queues

    assert (at(10), 2, {"x-queue-type": "classic"}) == (queue.details_at, queue.consumers, queue.arguments)


def test_the_messages_of_a_stream_are_those_of_its_statistics():
    """No version includes them in the totals."""
    silent = {"vhost": "/", "name": "log", "type": "stream", "state": "running", "totals": None, "arguments": {}}
    store = store_of(silent)
    store.put_details([details("log", type="stream", messages=9, messages_ready=9)], at(10))
    before = store.queues
    store.put_totals([silent], VERSION)

    assert [9] == [queue.messages for queue in store.queues]
    assert store.queues is before


def test_missing_message_counts_are_absent():
    """A classic queue on a node that is down: its contents are unknown."""
    store = store_of(totals(messages=3, messages_ready=3))
    store.put_details([details()], at(10))
    down = {key: value for key, value in totals(state="down").items() if not key.startswith("messages")}
    store.put_totals([down], VERSION)

    assert [("down", None, None)] == [(it.state, it.messages, it.messages_ready) for it in store.queues]


def test_members_that_go_offline_are_seen():
    """The totals of quorum queues show them."""
    fields = {"type": "quorum", "leader": "a", "members": ["a", "b"], "node": "a", "online": ["a", "b"]}
    store = store_of(totals(**fields))
    store.put_totals([totals(**{**fields, "online": ["a"]})], VERSION)

    assert [("a",)] == [queue.online for queue in store.queues]


def test_a_gap_is_counted_every_time():
    """Even if nothing changed; the other queues are not decoded for it."""
    store = QueueStore()
    payload = [totals("a", durable="yes"), totals("b"), "c"]
    gaps = [dict(store.put_totals(payload, VERSION)) for _ in range(3)]

    assert [{"durable": 1, "queues": 1}] * 3 == gaps
    assert ["a", "b"] == [queue.name for queue in store.queues]


@pytest.mark.parametrize("name", [None, 5, ["x"], {"x": 1}])
def test_a_queue_without_a_name_is_a_gap(name):
    """And not a crash."""
    store = QueueStore()

    assert store.put_totals([totals(name)], VERSION)["name"] == 1
    assert store.queues == ()


def test_a_full_reading_seeds_the_store():
    """All statistics have its time."""
    store = QueueStore()
    store.seed([details("a"), details("b")], at(5))
    store.put_totals([totals("a"), totals("b", messages=1)], VERSION)

    assert [at(5), at(5)] == [queue.details_at for queue in store.queues]


def test_coverage_counts_and_dates_the_statistics():
    """How many queues have some, and how old these are."""
    store = store_of(*(totals(name) for name in "abcd"))
    nothing = store.coverage()
    for name, moment in (("a", 10), ("b", 20), ("c", 60)):
        store.put_details([details(name)], at(moment))

    assert DetailCoverage(queues=4, detailed=0) == nothing
    assert DetailCoverage(queues=4, detailed=3, oldest=10, median=20) == store.coverage()


def test_a_queue_with_messages_gets_a_new_time_when_it_is_read_again():
    """Without progress, only the time shows that it was read again."""
    store = store_of(totals(messages=5))
    store.put_details([details()], at(10))
    before = store.queues
    store.put_details([details()], at(20))

    assert before[0] is not store.queues[0]
    assert at(20) == store.queues[0].details_at


def test_truncated_totals_change_nothing():
    """Half a list is not a list: queues that are not in it still exist."""
    store = store_of(totals("a"), totals("b"))
    before = store.queues

    def broken():
        yield totals("a", messages=9)
        raise ValueError("cut short")

    with pytest.raises(ValueError, match="cut short"):
        store.put_totals(broken(), VERSION)

    assert before is store.queues
    assert [0, 0] == [queue.messages for queue in store.queues]


def test_queues_are_in_the_order_of_the_broker_however_many_are_new():
    """Also queues that are decoded in one batch."""
    listed = [f"q{number:05}" for number in range(2500)]
    store = store_of(*(totals(name) for name in listed[::2]))
    store.put_totals((totals(name) for name in listed), VERSION)

    assert listed == [queue.name for queue in store.queues]
    assert not store.changed


def test_equal_values_of_many_queues_are_one_object():
    """Arguments, names, counters: for 100,000 queues they would be most of the memory."""
    store = store_of(*(totals(name, arguments={"x-max-length": 1000}) for name in "ab"))
    store.put_details([details(name, arguments={"x-max-length": 1000}) for name in "ab"], at(1))
    one, other = store.queues
    store.put_totals([totals(name, arguments={"x-max-length": 1000}, messages=1) for name in "ab"], VERSION)

    assert one.arguments is other.arguments
    assert one.memory is other.memory
    assert [queue.arguments is one.arguments for queue in store.queues] == [True, True]
    assert [after.stats is before.stats for after, before in zip(store.queues, (one, other), strict=True)] == [True] * 2
