from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel
from exporter.landing.following import PriorityTracker
from exporter.landing.shapes import CHANNELS
from tests.unit.exporter.made import WALL


def moment(seconds):
    """This long after the first reading."""
    return Instant(wall=WALL + seconds, mono=1000 + seconds)


def channel(name, unacked=0, **changes):
    """A channel that holds some messages."""
    return Channel(**{"name": name, "messages_unacked": unacked, **changes})


def followed():
    """Return followed channels, ranked by the messages they hold."""
    return PriorityTracker(CHANNELS, "shop", lambda it: it.messages_unacked or 0)


def reported(taken):
    """Return for each landed channel whether it is marked as gone."""
    return {row["channel"]: row["gone"] for block in taken[0] for row in block.arrow().to_pylist()}


def test_all_are_followed_where_there_is_room():
    """A new channel is a change; a quiet one keeps its place."""
    kind, quiet = followed(), (channel("a"), channel("b", 5))
    first = kind.take(moment(0), quiet, 10)
    later = kind.take(moment(5), (quiet[1], quiet[0]), 10)

    assert {"a": False, "b": False} == reported(first)
    assert ({}, 0) == (reported(later), later[1])


def test_trouble_goes_first_and_the_rest_is_counted():
    """There are at most as many rows as the cap, and left out channels are counted."""
    taken = followed().take(moment(0), (channel("a"), channel("b", 5), channel("c", 900), channel("d")), 2)

    assert {"b": False, "c": False} == reported(taken)
    assert 2 == taken[1]


def test_a_quiet_one_makes_room_and_says_so():
    """From then on its missing rows mean nothing."""
    kind, quiet = followed(), channel("quiet")
    kind.take(moment(0), (quiet,), 1)
    folder_bytes = kind.take(moment(30), (quiet, channel("new")), 1)
    moved = kind.take(moment(90), (quiet, channel("new", 1)), 1)

    assert {} == reported(folder_bytes)
    assert 1 == folder_bytes[1]
    assert {"quiet": True, "new": False} == reported(moved)


def test_a_little_more_trouble_drives_nobody_out():
    """Otherwise active channels would change places at every poll."""
    kind = followed()
    kind.take(moment(0), (channel("a", 10), channel("b", 0)), 1)
    near = kind.take(moment(5), (channel("a", 10), channel("b", 12)), 1)
    far = kind.take(moment(10), (channel("a", 10), channel("b", 5000)), 1)

    assert {} == reported(near)
    assert {"a": True, "b": False} == reported(far)


def test_a_closed_channel_is_removed():
    """At the poll that does not show it, once."""
    kind = followed()
    kind.take(moment(0), (channel("a", 10),), 5)

    assert {"a": True} == reported(kind.take(moment(5), (), 5))
    assert {} == reported(kind.take(moment(10), (), 5))


def test_a_counter_is_a_change():
    """An active channel is followed even if it holds no message."""
    kind = followed()
    kind.take(moment(0), (channel("a"), channel("b", 1)), 1)
    taken = kind.take(moment(100), (channel("a", stats=MessageStats(publish=4)), channel("b", 0)), 1)

    assert {"b": False} == reported(taken)
    assert 1 == taken[1]


def test_what_is_none_of_ours_is_left_out():
    """Neither landed nor counted."""
    kind = PriorityTracker(CHANNELS, "shop", lambda it: it.messages_unacked or 0, skip=lambda it: it.name == "own")

    assert ([], 0) == kind.take(moment(0), (channel("own", 99),), 0)
