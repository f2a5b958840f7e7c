"""Totals of all queues: decoding, and joining with known statistics."""

from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue, version_of
from exporter.broker.endpoints.queues import decode_queue, decode_queues, decode_totals
from exporter.broker.queue_store import QueueStore
from tests.unit.exporter.broker.server import VERSIONS, fixture

NOW = Instant(wall=1_700_000_000.0, mono=5.0)

TOTALS = {
    "vhost": "/",
    "name": "q",
    "type": "classic",
    "state": "running",
    "node": "a",
    "durable": True,
    "auto_delete": False,
    "exclusive": False,
    "arguments": {"x-max-length": 9},
    "policy": "lim",
    "messages": 5,
    "messages_ready": 3,
    "messages_unacknowledged": 2,
}
KNOWN = Queue(
    vhost="/",
    name="q",
    type="classic",
    state="running",
    node="a",
    durable=True,
    auto_delete=False,
    exclusive=False,
    arguments={"x-max-length": 9},
    policy="lim",
    messages=5,
    messages_ready=3,
    messages_unacked=2,
    consumers=1,
    memory=4096,
    stats=MessageStats(publish=7),
    details_at=NOW,
)


FRESH = replace(KNOWN, consumers=None, memory=None, stats=MessageStats(), details_at=None)
"""The same queue with its totals only."""


def joined_with(*items, known=KNOWN):
    """The queues of a store that knew one in full, after these totals; and the gaps."""
    store = QueueStore()
    store.seed([known], NOW)
    gaps = store.put_totals(list(items), (4, 3))
    return store.queues, dict(gaps)


def test_an_unchanged_queue_is_the_same_object():
    """So that 100,000 idle queues cost nothing downstream."""
    store = QueueStore()
    store.seed([KNOWN], NOW)
    before = store.queues
    gaps = store.put_totals([TOTALS], (4, 3))

    assert before is store.queues
    assert (KNOWN,) == before
    assert not gaps
    assert not store.changed


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"messages": 6, "messages_ready": 4}, {"messages": 6, "messages_ready": 4}),
        ({"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0}, dict.fromkeys(
            ("messages", "messages_ready", "messages_unacked"), 0)),
        ({"state": "down"}, {"state": "down"}),
        ({"members": ["a", "b"], "online": ["a"], "leader": "a"}, {
            "members": ("a", "b"), "online": ("a",), "leader": "a"}),
    ],
)  # fmt: skip
def test_a_changed_queue_is_a_new_object_with_the_old_details(changes, expected):
    """With the time at which they were read, from which their age follows."""
    (queue,), gaps = joined_with({**TOTALS, **changes})

    assert replace(KNOWN, **expected) == queue
    assert (NOW, 4096, {}) == (queue.details_at, queue.memory, gaps)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"type": "quorum"}, {"type": "quorum"}),
        ({"node": "b"}, {"node": "b"}),
        ({"durable": False}, {"durable": False}),
        ({"arguments": {}}, {"arguments": {}}),
    ],
)
def test_a_change_of_an_immutable_field_is_another_queue(changes, expected):
    """One that was redeclared or moved: the known details are not its own."""
    (queue,), gaps = joined_with({**TOTALS, **changes})

    assert replace(FRESH, **expected) == queue
    assert not gaps


def test_a_new_queue_has_its_totals_only():
    """Its details were never read and are absent."""
    (queue,), gaps = decode_totals([TOTALS], (4, 3))

    assert FRESH == queue
    assert not gaps


def test_a_deleted_queue_disappears():
    """A queue that is not in the totals does not come back from the store."""
    assert ((), {}) == joined_with()


def test_the_totals_of_a_stream_have_no_messages():
    """As 3.10 to 4.3 send it: the counts of its details stay."""
    item = {
        "vhost": "/",
        "name": "s",
        "type": "stream",
        "state": "running",
        "arguments": {},
        "exclusive": None,
        "totals": None,
        "type_specific": None,
    }
    known = Queue(vhost="/", name="s", type="stream", state="running", messages=70, messages_ready=70, details_at=NOW)

    assert ((Queue(vhost="/", name="s", type="stream", state="running"),), {}) == decode_totals([item], (4, 0))
    assert ((known,), {}) == joined_with(item, known=known)


@pytest.mark.parametrize(
    ("changes", "gap", "expected"),
    [
        ({"messages": "many"}, "messages", {"messages": None}),
        ({"messages": -1}, "messages", {"messages": None}),
        ({"messages": None}, "messages", {"messages": None}),
        ({"state": ["running"]}, "state", {}),
        ({"durable": "true", "messages": 6}, "durable", {"messages": 6}),
        ({"members": "a"}, "members", {}),
        ({"online": [1]}, "online", {}),
    ],
)
def test_an_unusable_value_is_a_gap_and_never_zero(changes, gap, expected):
    """Message counts are then absent, because they change all the time; other fields keep their known value."""
    (queue,), gaps = joined_with({**TOTALS, **changes})

    assert {gap: 1} == gaps
    assert replace(KNOWN, **expected) == queue


@pytest.mark.parametrize("item", [None, [], "q", {}, {"vhost": "/"}, {"vhost": ["/"], "name": {}}, {"name": "q"}])
def test_an_item_that_is_not_a_queue_is_a_gap(item):
    """The others are read."""
    queues, gaps = joined_with(item, TOTALS)

    assert (KNOWN,) == queues
    assert sum(gaps.values()) >= 1


@pytest.mark.parametrize("version", VERSIONS)
def test_one_queue_is_read_as_in_the_list(version):
    """`/api/queues/<vhost>/<name>` has the same fields, and more."""
    whole, _ = decode_queues(fixture(version, "queues"), version_of(version))

    one_by_one = [decode_queue(item, version_of(version)) for item in fixture(version, "queues")]

    assert [(queue, {}) for queue in whole] == one_by_one


@pytest.mark.parametrize("item", [None, [], "q", {}, {"vhost": "/"}])
def test_an_answer_that_is_not_a_queue_is_a_gap(item):
    """None, never a crash."""
    queue, gaps = decode_queue(item, (4, 3))

    assert queue is None
    assert gaps


def test_fields_of_the_single_queue_endpoint_are_ignored():
    """The list lacks them since 3.13: they would appear and disappear."""
    item = {
        "vhost": "/",
        "name": "q",
        "idle_since": "2026-11-21T15:31:08.961+00:00",
        "garbage_collection": {"minor_gcs": 3, "fullsweep_after": -1},
    }

    older, newer = decode_queue(item, (3, 12))[0], decode_queue(item, (3, 13))[0]

    assert (1795275068.961, {"minor_gcs": 3}) == (older.idle_since, older.garbage_collection)
    assert Queue(vhost="/", name="q") == newer
