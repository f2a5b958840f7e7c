import pytest

from diagnosis.hold_time import QUORUM_MOST, hold_time, may_hold, round_trip
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.consumers.films import busy, trip
from tests.unit.diagnosis.pictures import film, moment


def view_of(frame, outcomes=()):
    """What a rule sees after 20 s."""
    return View(film(frame, until=20), outcomes, moment(20), Thresholds())


def test_unacknowledged_messages_are_ack_rate_times_hold_time():
    """Ten unacknowledged messages and five acknowledged a second: each is held for 2 s."""
    view = view_of(busy())

    held = hold_time(view.history(view.queues[0]))

    assert (5.0, 10.0, 2.0) == (held.ack_rate, held.publish_rate, held.hold)


def test_without_an_acknowledgement_there_is_no_hold_time():
    """It could be any duration."""
    view = view_of(busy(goes=0.0))

    assert hold_time(view.history(view.queues[0])) is None


@pytest.mark.parametrize(
    ("frame", "most"),
    [
        (busy(consumers=3), 30),
        (busy(prefetch=0, held=50), None),
        (busy(prefetch=0, held=50, kind="quorum"), QUORUM_MOST),
        (busy(on={"prefetch_count": None}), None),
        (busy(on={"ack_required": False}), None),
        (busy(on={"active": False}), None),
    ],
    ids=["three", "no limit", "quorum", "not reported", "automatic", "standby"],
)
def test_what_consumers_may_hold(frame, most):
    """The sum of their prefetches, or what a quorum queue allows; None if there is no such number."""
    view = view_of(frame)

    assert most == may_hold(view, view.queues[0])


def test_the_round_trip_is_that_of_the_node_else_the_longest():
    """The node of the queue, where a probe reaches it."""
    view = view_of(busy(), (trip(0.002), trip(0.050, node="rabbit@far")))

    assert 0.002 == round_trip(view, "rabbit@one").seconds
    assert 0.050 == round_trip(view, "rabbit@else").seconds
    assert round_trip(view_of(busy()), "rabbit@one") is None
