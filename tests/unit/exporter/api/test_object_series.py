"""Series of single objects and the document of one queue."""

from dataclasses import replace

import orjson
import pytest

from ackscope.baselines import HOUR_OF_WEEK, Band, Baselines, hour_of_week
from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.errors import UsageError
from ackscope.snapshot import Channel, Consumer, Node, Part, Queue, Snapshot
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.object_series import MAX_OBJECTS, object_series, subject_series
from exporter.api.queue_page import queue_document


def at(seconds):
    """Return a moment."""
    return Instant(wall=1_700_000_000.0 + seconds, mono=1_000.0 + seconds)


def reading(seconds, *queues, **parts):
    """Return a snapshot of these queues and other parts."""
    moment = at(seconds)
    known = {"queues": queues, **parts}
    return Snapshot(
        cluster="shop", taken=moment, **{name: Part(value=tuple(each), at=moment) for name, each in known.items()}
    )


def queue(name, ready, published, acked=0, **changes):
    """Return a queue whose unacked messages are none."""
    return replace(
        Queue(
            vhost="/",
            name=name,
            type="classic",
            messages=ready,
            messages_ready=ready,
            messages_unacked=0,
            consumers=1,
            stats=MessageStats(publish=published, deliver=acked, deliver_get=acked, ack=acked),
        ),
        **changes,
    )


def film(*snapshots):
    """Return a window of these snapshots."""
    found = Window.empty("shop")
    for snapshot in snapshots:
        found = found.add(snapshot)
    return found


SHOP = film(
    reading(0, queue("a", 0, 100), queue("b", 5, 50)),
    reading(20, queue("a", 40, 300, acked=160), queue("b", 5, 50)),
    reading(40, queue("a", 80, 500, acked=320), queue("b", 5, 50)),
)


def lines(document, place=0):
    """Return the lines of one object by name."""
    return {line["name"]: line["line"] for line in document["objects"][place]["lines"]}


def test_series_are_in_the_requested_order():
    """An unknown queue has no lines, and takes none from another."""
    found = object_series(SHOP, "queues", '[["/","b"],["/","none"],["/","a"],["other","a"]]', at(40))

    assert ["b", "none", "a", "a"] == [it["name"] for it in found["objects"]]
    assert [(40.0, 0), (20.0, 40), (0.0, 80)] == lines(found, 2)["ready"]
    assert [(20.0, 10.0), (0.0, 10.0)] == lines(found, 2)["publish"]
    assert {} == lines(found, 1) == lines(found, 3)


def test_absent_counters_are_no_rates():
    """A queue without statistics has levels, and no rate of zero."""
    silent = [reading(20 * number, queue("a", 1, 0, stats=MessageStats())) for number in range(3)]

    assert [(20.0, None), (0.0, None)] == lines(object_series(film(*silent), "queues", '[["/","a"]]', at(40)))["ack"]


@pytest.mark.parametrize(
    "requested", [None, "", "{", '"a"', '["a"]', '[["a"]]', '[["/",1]]', orjson.dumps([["/", "a"]] * (MAX_OBJECTS + 1))]
)
def test_wrong_or_too_many_objects_are_refused(requested):
    """The request is bounded."""
    with pytest.raises(UsageError, match="objects: must be a JSON list"):
        object_series(SHOP, "queues", requested, at(40))


def test_nodes_and_channels_are_named():
    """Nodes have their limits as series, too; values that a version does not report have none."""
    node = Node(name="n1", mem_used=5, mem_limit=10, run_queue=1)
    channel = Channel(name="c1", messages_unacked=7, prefetch_count=10)
    seen = film(*(reading(30 * number, nodes=(node,), channels=(channel,)) for number in range(2)))
    found = lines(object_series(seen, "nodes", '["n1"]', at(30)))

    assert [(30.0, 10), (0.0, 10)] == found["mem_limit"]
    assert {"mem_used", "mem_limit", "run_queue"} == set(found)
    assert [(30.0, 7), (0.0, 7)] == lines(object_series(seen, "channels", '["c1"]', at(30)))["unacked"]


@pytest.mark.parametrize(
    ("kind", "family", "vhost", "name"),
    [("queue", "queues", "/", "a"), ("channel", "channels", None, "c1"), ("node", "nodes", None, "n1")],
)
def test_one_subject_has_the_same_series_as_a_list_of_one(kind, family, vhost, name):
    """Both paths of the API are answered by one implementation."""
    node, channel = Node(name="n1", mem_used=5), Channel(name="c1", messages_unacked=7)
    seen = film(*(reading(30 * it, queue("a", it, 100 * it), nodes=(node,), channels=(channel,)) for it in range(3)))
    requested = orjson.dumps([[vhost, name] if vhost else name]).decode()
    (listed,) = object_series(seen, family, requested, at(60))["objects"]

    assert listed["lines"] == subject_series(seen, at(60), kind, vhost, name) != []


def test_readings_of_a_channel_are_close_together():
    """Only a few are held: with the distance of queues there would be no curve."""
    seen = film(*(reading(10 * it, channels=(Channel(name="c1", messages_unacked=it),)) for it in range(4)))

    assert [(30.0, 0), (20.0, 1), (10.0, 2), (0.0, 3)] == lines(object_series(seen, "channels", '["c1"]', at(30)))[
        "unacked"
    ]


def document(window, name="a", baselines=None):
    """Return the document of one queue now."""
    return queue_document(window, "/", name, window.latest.taken, baselines, Thresholds())


def test_what_is_set_for_a_queue_says_by_what():
    """The value that applies: the lower number of both, else that of the argument."""
    mine = queue(
        "a",
        0,
        0,
        arguments={"x-queue-type": "classic", "x-max-length": 9, "x-message-ttl": 70, "x-overflow": "drop-head"},
        policy="limits",
        effective_policy={"max-length": 20, "message-ttl": 60, "overflow": "reject-publish", "expires": 5},
    )
    found = document(film(reading(0, mine)))["settings"]

    assert ("limits", None) == (found["policy"], found["operator_policy"])
    assert [
        ("expires", 5, "policy"),
        ("max-length", 9, "argument"),
        ("message-ttl", 60, "policy"),
        ("overflow", "drop-head", "argument"),
    ] == [(it["name"], it["value"], it["by"]) for it in found["set"]]


def test_settings_that_were_not_read_are_unknown():
    """Nothing set is something else."""
    assert document(film(reading(0, queue("a", 0, 0, settings_known=False))))["settings"] is None
    assert document(film(reading(0, queue("b", 0, 0))))["settings"] is None
    assert {"policy": None, "operator_policy": None, "set": []} == document(SHOP)["settings"]


def test_the_ledger_of_a_queue_balances():
    """In is out, stored and lost."""
    found = document(SHOP)["ledger"]

    assert (400, 320, 80, 0) == tuple(found[name] for name in ("arrived", "acked", "stored", "proven_vanished"))
    assert (40.0, None) == (found["seconds"], found["because"])


@pytest.mark.parametrize(
    ("window", "because"),
    [
        (film(reading(0, queue("b", 0, 0))), "not_read"),
        (film(reading(0, queue("a", 0, 0))), "few_readings"),
        (film(*(reading(20 * it, queue("a", 0, 0, type="stream")) for it in range(3))), "stream"),
        (
            film(
                *(
                    reading(20 * it, queue("a", 0, it), consumers=[Consumer(tag="t", vhost="/", queue="a")])
                    for it in range(3)
                )
            ),
            "settles_unseen",
        ),
    ],
    ids=["unknown", "new", "stream", "uncounted protocol"],
)
def test_a_missing_ledger_has_its_reason(window, because):
    """A queue whose balance is not known does not look balanced."""
    assert {"because": because} == document(window)["ledger"]


def test_bands_of_a_queue_are_those_of_this_hour():
    """A measure without a band has the reason."""
    hour = hour_of_week(SHOP.latest.taken.wall)
    band = Band(1.0, 2.0, 3.0, HOUR_OF_WEEK, 4)
    known = Baselines(hour, SHOP.latest.taken.wall, {("queue", "/", "a", "ready"): band})
    found = document(SHOP, baselines=known)["usual"]

    assert (1.0, 3.0) == (found["ready"]["low"], found["ready"]["high"])
    assert ["because"] == list(found["ack"]) == list(document(SHOP)["usual"]["ready"])
