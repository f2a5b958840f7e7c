from dataclasses import replace

from ackscope.snapshot import Part
from exporter.runtime.snapshot_relay import SnapshotRelay
from tests.unit.exporter.made import part, small

REFUSED = Part(error="refused")


def fed(feed, got, *snapshots):
    """Return what a feed passed on for each snapshot."""
    got.clear()
    for snapshot in snapshots:
        feed(snapshot)
    return list(got)


def test_a_first_poller_shows_what_it_read():
    """There is no earlier snapshot to keep."""
    got = []

    assert [small()] == fed(SnapshotRelay(got.append), got, small())


def test_what_was_not_read_again_yet_is_shown_as_it_was():
    """The old part keeps its age, and has the error of the new poller."""
    got = []
    (shown,) = fed(SnapshotRelay(got.append, small()), got, small(queues=REFUSED, health=Part()))

    assert small().health == shown.health
    assert replace(small().queues, error="refused") == shown.queues


def test_what_was_read_again_is_never_accepted_from_before():
    """If it is lost later, there is a gap; the older value does not return."""
    got = []
    emptied = small(queues=part(()))
    *_, shown = fed(SnapshotRelay(got.append, small()), got, emptied, small(queues=REFUSED))

    assert REFUSED == shown.queues


def test_a_feed_that_is_off_hands_nothing_on():
    """Later snapshots of its poller are ignored."""
    got = []
    feed = SnapshotRelay(got.append, small())
    feed.close()

    assert [] == fed(feed, got, small())


def test_one_attempt_is_one_object():
    """Landing counts attempts by object, so another snapshot is not another attempt."""
    got = []
    first, again, later = fed(
        SnapshotRelay(got.append, small()),
        got,
        small(queues=REFUSED),
        small(queues=REFUSED),
        small(queues=Part(error="again")),
    )

    assert first.queues is again.queues
    assert "again" == later.queues.error
