from itertools import pairwise

import pytest

from ackscope.snapshot import Part
from diagnosis.series import span
from diagnosis.window import HORIZON, LIMIT, RECENT, Window
from tests.unit.diagnosis.pictures import channel, connection, film, moment, queue, snapshot, stats


def test_an_empty_window_has_seen_nothing():
    """Before the first poll there is no latest snapshot, no span and no reading."""
    window = Window.empty("shop")

    assert (None, 0.0, ()) == (window.latest, window.span, window.readings("queues"))


def test_it_stays_bounded_and_reaches_the_horizon():
    """An hour of polls leaves a dozen snapshots that still span ten minutes."""
    window = film(lambda _: {}, until=3600)

    assert len(window.snapshots) == LIMIT
    assert window.span >= HORIZON


def test_recent_snapshots_are_never_thinned():
    """The latest ones are all there, five seconds apart."""
    window = film(lambda _: {}, until=1000)

    ages = [1000 - (snap.taken.mono - 1000.0) for snap in window.snapshots[-RECENT:]]

    assert [25.0, 20.0, 15.0, 10.0, 5.0, 0.0] == ages


def test_older_gaps_grow_with_age_only():
    """No gap is longer than the age of its newer end, so at least half of any duration is visible."""
    window = film(lambda _: {}, until=2000)
    ages = [window.latest.taken.since(snap.taken) for snap in window.snapshots]

    gaps = [(older - newer, newer) for older, newer in pairwise(ages) if newer >= 30]

    assert all(gap <= newer for gap, newer in gaps), gaps


def test_every_moment_of_a_film_is_bounded():
    """The limits hold after each added snapshot, not only at the end."""
    window = Window.empty("shop")
    for second in range(0, 1500, 5):
        window = window.add(snapshot(second))

        assert len(window.snapshots) <= LIMIT


def test_a_failed_poll_is_no_further_sample():
    """The repeated part keeps its old time, and counts once."""
    first = snapshot(0, queues=(queue(),))
    failed = snapshot(5, queues=Part(value=first.queues.value, at=first.queues.at, error="timed out"))

    window = Window.empty("shop").add(first).add(failed)

    assert [moment(0)] == [seen.at for seen in window.readings("queues")]
    assert "timed out" == window.latest.queues.error


def test_a_snapshot_without_any_new_reading_replaces_the_latest():
    """It adds errors, but no new state of the cluster."""
    first = snapshot(0)
    again = snapshot(0, hidden_queues=2)

    window = Window.empty("shop").add(first).add(again)

    assert (1, 2) == (len(window.snapshots), window.latest.hidden_queues)


def test_objects_that_did_not_change_are_held_once():
    """10,000 idle queues are stored once, not once per poll."""
    window = film(lambda t: {"queues": (queue("idle"), queue("busy", stats=stats(ack=int(t))))}, until=5)
    (first, second) = (seen.value for seen in window.readings("queues"))

    assert first[0] is second[0]
    assert (0, 5) == (first[1].stats.ack, second[1].stats.ack)


@pytest.mark.parametrize("order", [1, -1], ids=["as before", "reversed"])
def test_sharing_keeps_the_order_of_the_latest_reading(order):
    """Only the objects are shared, never their order."""
    queues = (queue("a"), queue("b"))
    window = Window.empty("shop").add(snapshot(0, queues=queues)).add(snapshot(5, queues=queues[::order]))

    assert queues[::order] == window.latest.queues.value


def test_older_snapshots_keep_queues_nodes_and_totals_only():
    """No rule needs clients of minutes ago, and they would take the most memory."""
    window = film(lambda _: {"queues": (queue(),), "channels": (channel(),)}, until=600)
    kept = {family: len(window.readings(family)) for family in ("overview", "queues", "health", "channels", "nodes")}

    assert {"overview": LIMIT, "queues": LIMIT, "health": LIMIT, "channels": RECENT, "nodes": LIMIT} == kept


def test_two_hours_of_nodes_are_held_a_minute_apart():
    """The trail serves trends: it is bounded, ends with the latest reading, and has no queues."""
    window = film(lambda _: {"queues": (queue(),)}, until=3 * 3600, every=30)
    trend = window.trend("nodes")

    assert 121 <= len(trend) <= 123
    assert moment(3 * 3600) == trend[-1].at
    assert 7200 <= span(trend) <= 7260
    assert {60.0} == {newer.at.since(older.at) for older, newer in pairwise(trend[:-1])}
    assert () == window.trail[0].parts["queues"].value or window.trail[0].parts["queues"].value is None


def test_of_clients_that_are_read_seldom_some_readings_are_held():
    """A busy broker is asked for them once a minute, and two readings are needed to see changes."""
    window = Window.empty("shop")
    for second in range(0, 400, 5):
        read = moment(second - second % 60)
        window = window.add(snapshot(second, connections=Part(value=(), at=read), channels=Part(value=(), at=read)))
    moments = [seen.at.mono - 1000.0 for seen in window.readings("connections")]

    assert [240.0, 300.0, 360.0] == moments
    assert moments == [seen.at.mono - 1000.0 for seen in window.readings("channels")]


def test_the_time_since_which_a_client_sends_nothing_is_followed_beyond_the_readings():
    """For clients that are sent something; the next byte from the client ends it."""

    def frame(t):
        fed = {"heartbeat": 60, "recv_oct": 500 + (8 if t >= 80 else 0), "connected_at": 5.0, "reductions": int(t)}
        # Nothing was sent between second 30 and 40, and the process of the connection worked meanwhile.
        return {"connections": (connection(send_oct=int(min(t, 30) + max(t - 40, 0)), **fed),)}

    def quiet(until):
        (seen,) = film(frame, until=until).readings("connections")[-1].value
        return seen.quiet_since

    assert moment(0) == quiet(5) == quiet(35) == quiet(75)
    assert quiet(80) is None


def test_a_client_that_is_sent_nothing_is_not_followed():
    """It costs nothing then."""
    idle = {"heartbeat": 60, "recv_oct": 500, "send_oct": 700}

    (seen,) = film(lambda _: {"connections": (connection(**idle),)}, until=30).readings("connections")[-1].value

    assert seen.quiet_since is None
