"""Totals of all queues: as they are decoded, and as the store lays them over what is known."""

from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from exporter.broker.endpoints.queues import decode_queue, decode_queues, decode_totals
from exporter.broker.fields import version_of
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
"""The same queue as its totals alone tell it."""


def laid_over(*items, known=KNOWN):
    """The queues of a store that knew one in full, after totals; and the gaps."""
    store = QueueStore()
    store.seed([known], NOW)
    gaps = store.put_totals(list(items), (4, 3))
    return store.queues, dict(gaps)


def test_a_queue_of_which_nothing_changed_is_the_same_object():
    """So that 100,000 idle queues cost nothing further on."""
    store = QueueStore()
    store.seed([KNOWN], NOW)
    before = store.queues
    gaps = store.put_totals([TOTALS], (4, 3))

    assert before is store.queues
    assert (KNOWN,) == before
    assert not gaps
    assert not store.changed


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"messages": 6, "messages_ready": 4}, {"messages": 6, "messages_ready": 4}),
        ({"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0}, dict.fromkeys(
            ("messages", "messages_ready", "messages_unacked"), 0)),
        ({"state": "down"}, {"state": "down"}),
        ({"members": ["a", "b"], "online": ["a"], "leader": "a"}, {
            "members": ("a", "b"), "online": ("a",), "leader": "a"}),
    ],
)  # fmt: skip
def test_what_changed_is_new_and_the_details_stay(told, expected):
    """With the moment at which they were read: their age is told by it."""
    (queue,), gaps = laid_over({**TOTALS, **told})

    assert replace(KNOWN, **expected) == queue
    assert (NOW, 4096, {}) == (queue.details_at, queue.memory, gaps)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"type": "quorum"}, {"type": "quorum"}),
        ({"node": "b"}, {"node": "b"}),
        ({"durable": False}, {"durable": False}),
        ({"arguments": {}}, {"arguments": {}}),
    ],
)
def test_what_no_queue_changes_in_its_life_is_another_queue(told, expected):
    """One made anew under the name, or moved: what was known is not of this one."""
    (queue,), gaps = laid_over({**TOTALS, **told})

    assert replace(FRESH, **expected) == queue
    assert not gaps


def test_a_new_queue_has_its_totals_only():
    """Its details were never read: absent."""
    (queue,), gaps = decode_totals([TOTALS], (4, 3))

    assert FRESH == queue
    assert not gaps


def test_a_queue_that_is_gone_is_gone():
    """What is not in the list does not come back from what is known."""
    assert ((), {}) == laid_over()


def test_of_a_stream_the_totals_tell_no_messages():
    """As 3.10 to 4.3 answer it: what its details told stays."""
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
    assert ((known,), {}) == laid_over(item, known=known)


@pytest.mark.parametrize(
    ("told", "gap", "expected"),
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
def test_what_is_unusable_is_a_gap_and_never_a_zero(told, gap, expected):
    """Messages are then absent, for they change all the time; what is told seldom stays as it was known."""
    (queue,), gaps = laid_over({**TOTALS, **told})

    assert {gap: 1} == gaps
    assert replace(KNOWN, **expected) == queue


@pytest.mark.parametrize("item", [None, [], "q", {}, {"vhost": "/"}, {"vhost": ["/"], "name": {}}, {"name": "q"}])
def test_an_item_that_is_no_queue_is_a_gap(item):
    """The others are read."""
    queues, gaps = laid_over(item, TOTALS)

    assert (KNOWN,) == queues
    assert sum(gaps.values()) >= 1


@pytest.mark.parametrize("version", VERSIONS)
def test_one_queue_is_read_as_in_the_list(version):
    """`/api/queues/<vhost>/<name>` holds the same fields, and more."""
    whole, _ = decode_queues(fixture(version, "queues"), version_of(version))

    one_by_one = [decode_queue(item, version_of(version)) for item in fixture(version, "queues")]

    assert [(queue, {}) for queue in whole] == one_by_one


@pytest.mark.parametrize("item", [None, [], "q", {}, {"vhost": "/"}])
def test_an_answer_that_is_no_queue_is_a_gap(item):
    """None, never a crash."""
    queue, gaps = decode_queue(item, (4, 3))

    assert queue is None
    assert gaps


def test_what_only_an_answer_about_one_queue_holds_is_withheld():
    """From 3.13 on the list lacks them: they would be there for some queues, now and then."""
    item = {
        "vhost": "/",
        "name": "q",
        "idle_since": "2026-11-21T15:31:08.961+00:00",
        "garbage_collection": {"minor_gcs": 3, "fullsweep_after": -1},
    }

    older, newer = decode_queue(item, (3, 12))[0], decode_queue(item, (3, 13))[0]

    assert (1795275068.961, {"minor_gcs": 3}) == (older.idle_since, older.garbage_collection)
    assert Queue(vhost="/", name="q") == newer
