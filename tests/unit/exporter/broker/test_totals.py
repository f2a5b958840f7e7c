"""Totals of all queues, laid over what is known of them."""

from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from exporter.broker.fields import version_of
from exporter.broker.queues import decode_queue, decode_queues, decode_totals
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


def laid_over(known, **changes):
    """The queue that totals with these changes make of a known one, and the gaps."""
    (queue,), gaps = decode_totals([{**TOTALS, **changes}], (4, 3), {known.key: known})
    return queue, dict(gaps)


def test_a_queue_of_which_nothing_changed_is_the_same_object():
    """So that 100,000 idle queues cost nothing further on."""
    queue, gaps = laid_over(KNOWN)

    assert queue is KNOWN
    assert not gaps


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"messages": 6, "messages_ready": 4}, {"messages": 6, "messages_ready": 4}),
        ({"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0}, dict.fromkeys(
            ("messages", "messages_ready", "messages_unacked"), 0)),
        ({"state": "down"}, {"state": "down"}),
        ({"node": "b"}, {"node": "b"}),
        ({"policy": "other"}, {"policy": "other"}),
        ({"arguments": {}}, {"arguments": {}}),
        ({"members": ["a", "b"], "online": ["a"], "leader": "a"}, {
            "members": ("a", "b"), "online": ("a",), "leader": "a"}),
    ],
)  # fmt: skip
def test_what_changed_is_new_and_the_details_stay(told, expected):
    """With the moment at which they were read: their age is told by it."""
    queue, gaps = laid_over(KNOWN, **told)

    assert replace(KNOWN, **expected) == queue
    assert (NOW, 4096, {}) == (queue.details_at, queue.memory, gaps)


def test_a_new_queue_has_its_totals_only():
    """Its details were never read: absent."""
    (queue,), gaps = decode_totals([TOTALS], (4, 3), {})

    assert replace(KNOWN, consumers=None, memory=None, stats=MessageStats(), details_at=None) == queue
    assert not gaps


def test_a_queue_that_is_gone_is_gone():
    """What is not in the list does not come back from what is known."""
    assert ((), {}) == decode_totals([], (4, 3), {KNOWN.key: KNOWN})


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
    (queue,), _ = decode_totals([item], (4, 0), {known.key: known})
    assert queue is known


@pytest.mark.parametrize(
    ("told", "gap"),
    [
        ({"messages": "many"}, "messages"),
        ({"messages": -1}, "messages"),
        ({"messages": None}, "messages"),
        ({"state": ["running"]}, "state"),
        ({"durable": "true", "messages": 6}, "durable"),
        ({"arguments": "none"}, "arguments"),
        ({"members": "a"}, "members"),
        ({"online": [1]}, "online"),
    ],
)
def test_what_is_unusable_is_a_gap_and_never_a_zero(told, gap):
    """The value that was known stays, as does everything else."""
    queue, gaps = laid_over(KNOWN, **told)

    assert {gap: 1} == gaps
    assert replace(KNOWN, messages=queue.messages) == queue
    assert queue.messages in (5, 6)


@pytest.mark.parametrize("item", [None, [], "q", {}, {"vhost": "/"}, {"vhost": ["/"], "name": {}}, {"name": "q"}])
def test_an_item_that_is_no_queue_is_a_gap(item):
    """The others are read."""
    queues, gaps = decode_totals([item, TOTALS], (4, 3), {KNOWN.key: KNOWN})

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
