import pytest

from diagnosis.rules.queues._shared.message_balance import balance, lasts, losing_run
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.pictures import film, queue, stats
from tests.unit.diagnosis.queues.films import flowing, frame


def seen(window):
    """Return the view of a window, and its first queue."""
    view = View(window, (), window.latest.taken, Thresholds())
    return view, view.queues[0]


def lost(make, until=40):
    """Return the messages that the balance of a film shows as lost, or None."""
    view, first = seen(film(lambda t: frame(make(t)), until=until))
    found = losing_run(view, first)
    return None if found is None else found[1].lost


def test_messages_neither_consumed_nor_stored_are_lost():
    """Eight a second are published, two consumed, none stored: six a second are lost, over 40 s."""
    assert 240 == lost(lambda t: flowing(t, acked=2.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: flowing(t, acked=8.0),
        lambda t: flowing(t, published=8.0, ready=int(8 * t)),
        lambda t: flowing(t, published=8.0, acked=2.0, rejected=6.0),
        lambda t: flowing(t, published=0.0),
        lambda t: flowing(t, published=8.0, acked=8.0, ready=5 if int(t) % 10 else 0),
    ],
    ids=["all consumed", "all stored", "rejected by consumers", "nothing published", "delayed counters"],
)
def test_messages_that_are_accounted_for_are_not_lost(make):
    """Messages that consumers rejected were delivered, so they are not lost."""
    assert lost(make) is None


def test_messages_that_leave_at_once_are_counted_too():
    """The backlog falls once, and the counters of deliveries are refreshed since."""
    assert 500 == lost(lambda t: flowing(t, acked=8.0, ready=500 if t < 30 else 0))


def test_a_burst_whose_queue_length_is_reported_late_is_no_loss():
    """`publish` is current, the number of messages is refreshed seconds later: the next interval makes up for it."""

    def make(t):
        published, reported = (300 if t >= 30 else 0), (300 if t >= 35 else 0)
        return queue(messages_ready=reported, stats=stats(publish=100 + published))

    for until in (30, 35, 40):
        assert lost(make, until) is None


def test_a_steady_queue_with_jittering_delays_is_no_loss():
    """The number of messages is delayed by up to five seconds, sometimes more and sometimes less."""

    def make(t):
        lag = (0, 4, 1, 5, 2)[int(t / 5) % 5]
        return queue(messages_ready=int(20 * max(0.0, t - lag)), stats=stats(publish=int(100 + 20 * t)))

    assert [None] * 12 == [lost(make, until) for until in range(20, 80, 5)]


def test_a_number_that_is_absent_is_not_zero():
    """A queue whose node is down has a history and no number of messages."""
    view, first = seen(
        film(lambda t: frame(queue(messages_ready=None, messages=None, stats=stats(publish=int(t)))), 30)
    )

    assert balance(view.history(first)) is None
    assert losing_run(view, first) is None


@pytest.mark.parametrize("name", ["orders", "a.b1"])
def test_a_queue_that_was_just_declared_is_empty(name):
    """The broker reports its lengths and counters some seconds late; what it loses from then on is counted."""

    def make(t):
        if t < 5:
            return queue(name, messages_ready=None, messages_unacked=None, messages=None)
        return queue(name, messages_ready=0, stats=stats(publish=int(20 * min(t, 20))))

    assert 400 == lost(make, until=60)


@pytest.mark.parametrize(("there", "seconds"), [(True, 3000), (False, 65)], ids=["old", "declared meanwhile"])
def test_a_queue_has_lost_no_messages_before_it_was_declared(there, seconds):
    """It lost 12,000 messages at first, and three a second since: as much as in 50 min at that pace."""

    def make(t):
        return queue("scores.live", messages_ready=0, stats=stats(publish=int(12_000 + 3 * t), deliver=0, ack=0))

    window = film(lambda t: frame(make(t)) if there or t >= 20 else {"queues": ()}, until=80)
    view, first = seen(window)

    assert seconds == pytest.approx(lasts(view, *losing_run(view, first)), rel=0.05)
