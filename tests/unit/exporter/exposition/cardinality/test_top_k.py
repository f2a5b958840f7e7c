"""Selection of the shown objects, and the sums of the remainder."""

import random
from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Connection, Consumer, MessageStats, Queue
from exporter.exposition.cardinality.selection import OTHER
from exporter.exposition.cardinality.top_k import TopK, select_all
from exporter.exposition.settings import MetricsSettings
from tests.unit.exporter.made import part, small


def queue(name, messages=0, **more):
    """Return a classic queue in "/" with all fields."""
    values = {"type": "classic", "state": "running", "consumers": 0, "messages_unacked": 0, "memory": 10, **more}
    return Queue(**{"vhost": "/", "name": name, "messages": messages, "messages_ready": messages, **values})


def at(mono, **parts):
    """Return the small cluster at a time."""
    return replace(small(**{name: part(tuple(value)) for name, value in parts.items()}), taken=Instant(0.0, mono))


def select(chooser, mono, **parts):
    """Return what is shown of the small cluster."""
    return chooser.select([at(mono, **parts)]).of("shop")


def names(chosen):
    """Return the names of the shown objects."""
    return {it.name for it in chosen.shown}


def test_under_the_cap_all_are_shown_and_there_is_no_rest():
    """An empty remainder has no series."""
    chosen = select(TopK(MetricsSettings()), 0.0, queues=[queue("a"), queue("b")]).queues

    assert {"a", "b"} == names(chosen)
    assert (0, {}) == (chosen.omitted, chosen.remainder)


def test_backlog_unacknowledged_and_redelivered_ones_matter():
    """Each reason gets its share of the places."""
    chooser = TopK(MetricsSettings(max_queues=4))
    idle = [queue(f"idle-{number}") for number in range(9)]
    backlog = [queue(f"backlog-{number}", 1000 + number) for number in range(9)]
    unacked = queue("unacked", messages_unacked=3)
    again = queue("again", stats=MessageStats(redeliver=5))
    select(chooser, 0.0, queues=[*idle, *backlog, unacked, again])
    busy = replace(again, stats=MessageStats(redeliver=9))
    chosen = select(chooser, 1000.0, queues=[*idle, *backlog, unacked, busy]).queues

    assert {"backlog-8", "unacked", "again"} < names(chosen)
    assert 16 == chosen.omitted


def test_a_queue_that_moves_matters():
    """The queue is empty because its consumers are fast, but it has the most traffic."""
    chooser = TopK(MetricsSettings(max_queues=1))
    quiet = [queue(f"idle-{number}") for number in range(9)]
    select(chooser, 0.0, queues=[*quiet, queue("busy", stats=MessageStats(publish=1))])
    chosen = select(chooser, 1000.0, queues=[*quiet, queue("busy", stats=MessageStats(publish=500))]).queues

    assert {"busy"} == names(chosen)


def test_a_queue_that_fills_or_drains_matters():
    """This holds even if its counters are not read again."""
    chooser = TopK(MetricsSettings(max_queues=2))
    steady = [queue(f"steady-{number}", 50) for number in range(9)]
    select(chooser, 0.0, queues=[*steady, queue("drains", 40)])
    chosen = select(chooser, 1000.0, queues=[*steady, queue("drains", 10)]).queues

    assert "drains" in names(chosen)


def test_patterns_are_searched_in_virtual_host_and_name():
    """Named ones come first, excluded ones never; the rest has them in its sums."""
    chooser = TopK(MetricsSettings(max_queues=2, include_queues="^/", exclude_queues="tmp$"))
    chosen = select(chooser, 0.0, queues=[queue("a.tmp", 9), queue("b"), queue("big", 5, vhost="shop")]).queues

    assert {"b", "big"} == names(chosen)
    assert 1 == chosen.omitted
    assert 9 == chosen.remainder["messages"]


def test_excluded_queues_are_left_out_under_the_cap_too():
    """And so are their consumers."""
    chooser = TopK(MetricsSettings(exclude_queues="tmp$"))
    both = [queue("tmp"), queue("kept")]
    consumers = [Consumer(tag=it.name, vhost="/", queue=it.name) for it in both]
    selection = select(chooser, 0.0, queues=both, consumers=consumers)

    assert {"kept"} == names(selection.queues)
    assert ["kept"] == [it.queue for it in selection.consumers.shown]
    assert 1 == selection.consumers.omitted


def test_new_patterns_and_caps_hold_from_the_next_choice_on():
    """A reload keeps the counted values."""
    chooser = TopK(MetricsSettings(max_queues=0))
    select(chooser, 0.0, queues=[queue("a", stats=MessageStats(publish=5)), queue("b")])
    select(chooser, 5.0, queues=[queue("a", stats=MessageStats(publish=9)), queue("b")])
    chooser.apply(MetricsSettings(exclude_queues="/a$"))
    chosen = select(chooser, 10.0, queues=[queue("a", stats=MessageStats(publish=10)), queue("b")]).queues

    assert {"b"} == names(chosen)
    assert 5 == chosen.remainder["stats.publish"]


@pytest.mark.parametrize("seed", range(10))
def test_shown_and_rest_add_up_to_the_whole(seed):
    """This holds at any time, for every gauge that all queues report."""
    chance = random.Random(seed)
    chooser = TopK(MetricsSettings(max_queues=seed, exclude_queues="7$"))
    queues = {}
    for moment in range(40):
        for number in chance.sample(range(20), 6):
            queues[number] = queue(f"q{number}", chance.randrange(50), consumers=chance.randrange(3))
        queues.pop(chance.randrange(20), None)
        selection = select(chooser, 60.0 * moment, queues=queues.values())
        for path in ("messages", "messages_ready", "consumers", "memory"):
            whole = sum(getattr(it, path) for it in queues.values())
            shown = sum(getattr(it, path) for it in selection.queues.shown)

            assert whole == shown + selection.queues.remainder.get(path, 0)
            assert whole == sum(tally.sums[path] for tally in selection.totals.types.values())
            assert whole == sum(tally.sums[path] for tally in selection.totals.vhosts.values())


def test_a_sum_is_withheld_while_one_of_the_rest_lacks_it():
    """A partial total looks like a drained queue."""
    chooser = TopK(MetricsSettings(max_queues=1))
    one = [queue("big", 9), queue("a", 1), queue("b", 2, memory=None)]
    remainder = select(chooser, 0.0, queues=one).queues.remainder

    assert 3 == remainder["messages"]
    assert "memory" not in remainder


def test_what_a_type_does_not_have_is_no_gap():
    """Streams report no size of bodies; the sum of the other queues is complete without them."""
    chooser = TopK(MetricsSettings(max_queues=0))
    log = queue("log", 5, type="stream", message_bytes=None)
    remainder = select(chooser, 0.0, queues=[queue("a", 1, message_bytes=7), log]).queues.remainder

    assert 7 == remainder["message_bytes"]
    assert "segments" not in remainder


def test_what_was_never_read_of_a_queue_is_a_gap():
    """Its type may have the field, but only its totals were read so far."""
    chooser = TopK(MetricsSettings(max_queues=0))
    bare = Queue(vhost="/", name="log", type="stream", messages=3, messages_ready=3, messages_unacked=0)
    remainder = select(chooser, 0.0, queues=[queue("a", 1, message_bytes=7), bare]).queues.remainder

    assert 4 == remainder["messages"]
    assert "message_bytes" not in remainder
    assert "consumers" not in remainder


def test_first_details_are_no_rise():
    """What a queue counted before its first full reading is not an increase."""
    chooser = TopK(MetricsSettings(max_queues=0))
    bare = Queue(vhost="/", name="a", type="classic", messages=0)
    select(chooser, 0.0, queues=[bare])
    totals = replace(bare, consumers=0, stats=MessageStats(publish=1000), details_at=Instant(0.0, 4.0))
    select(chooser, 5.0, queues=[totals])
    chosen = select(chooser, 10.0, queues=[replace(totals, stats=MessageStats(publish=1003))]).queues

    assert 3 == chosen.remainder["stats.publish"]


def test_virtual_hosts_beyond_the_cap_are_added_up():
    """Those with most messages have totals of their own."""
    chooser = TopK(MetricsSettings(max_vhosts=1))
    some = [queue("a", 1, vhost="one"), queue("b", 9, vhost="two"), queue("c", 2, vhost="three")]
    vhosts = select(chooser, 0.0, queues=some).totals.vhosts

    assert {"two": (1, 9), OTHER: (2, 3)} == {key: (it.number, it.sums["messages"]) for key, it in vhosts.items()}


def test_replicas_are_reported_over_all_queues():
    """This shows where leaders are, and how many queues have none."""
    nodes = ("n1", "n2", "n3")
    some = [
        queue("a", type="quorum", leader="n1", members=nodes, online=nodes),
        queue("b", type="quorum", leader="n2", members=nodes, online=nodes[:2]),
        queue("c", type="quorum", node="n3", members=nodes, online=()),
        queue("d", node="n1"),
        queue("e", type="stream", node="n1", members=nodes, online=nodes[:1]),
        queue("f", type="quorum", leader="n1", members=nodes, online=nodes, state="minority"),
    ]
    totals = select(TopK(MetricsSettings(max_queues=0)), 0.0, queues=some).totals

    how = {("quorum", "leaderless"), ("quorum", "minority"), ("quorum", "partial"), ("quorum", "whole")}
    assert dict.fromkeys([*how, ("stream", "minority")], 1) == totals.replicas
    places = {("classic", "n1"): 1, ("quorum", ""): 1, ("quorum", "n1"): 2, ("quorum", "n2"): 1, ("stream", "n1"): 1}
    assert places == totals.places


def test_channels_and_connections_have_a_rest_too():
    """Channels and connections with most held or waiting messages are shown."""
    chooser = TopK(MetricsSettings(max_channels=1, max_connections=1))
    channels = [Channel(name="idle", messages_unacked=0), Channel(name="full", messages_unacked=9)]
    connections = [Connection(name="k", state="running", channels=3), Connection(name="l", state="blocked", channels=1)]
    selection = select(chooser, 0.0, channels=channels, connections=connections)

    assert ({"full"}, {"l"}) == (names(selection.channels), names(selection.connections))
    assert 0 == selection.channels.remainder["messages_unacked"]
    assert 3 == selection.connections.remainder["channels"]


def test_consumers_that_hold_most_are_shown():
    """They rank by the messages of their channel, because the broker does not count per consumer."""
    chooser = TopK(MetricsSettings(max_consumers=1))
    channels = [Channel(name="c1", messages_unacked=0), Channel(name="c2", messages_unacked=9)]
    consumers = [Consumer(tag=it.name, vhost="/", queue="orders", channel_name=it.name) for it in channels]

    assert ["c2"] == [it.tag for it in select(chooser, 0.0, channels=channels, consumers=consumers).consumers.shown]


def test_a_part_that_was_read_before_and_failed_now_stays():
    """The last good reading is the same object: nothing rose, and nobody is hidden."""
    chooser = TopK(MetricsSettings(max_queues=1))
    snapshot = at(0.0, queues=[queue("a", 1, stats=MessageStats(publish=5)), queue("b", 2)])
    included = chooser.select([snapshot]).of("shop").queues
    again = chooser.select([replace(snapshot, taken=Instant(0.0, 900.0))]).of("shop").queues

    assert included is again


def test_one_look_shows_everything():
    """There is no cap and no remainder; increases are unknown after one reading, not zero."""
    chosen = select_all([small()]).of("shop")

    assert 2 == len(chosen.queues.shown)
    assert {} == chosen.queues.remainder
    assert {} == chosen.totals.counts
    assert 0 == TopK(MetricsSettings()).select([small()]).of("shop").totals.counts["classic"]["stats.publish"]
