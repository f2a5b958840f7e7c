import pytest

from diagnosis.rules.queues.balance import balance, losing
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.pictures import film, queue, stats
from tests.unit.diagnosis.queues.films import flowing, frame


def seen(window):
    """The view of a window, and its first queue."""
    view = View(window, (), window.latest.taken, Thresholds())
    return view, view.queues[0]


def lost(make, until=40):
    """What the balance of a film says is lost; None where it says nothing."""
    view, first = seen(film(lambda t: frame(make(t)), until=until))
    found = losing(view, first)
    return None if found is None else found[1].lost


def test_what_is_neither_taken_nor_stored_is_lost():
    """Eight a second are published, two taken, none kept: six a second, over 40 s."""
    assert 240 == lost(lambda t: flowing(t, taken=2.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: flowing(t, taken=8.0),
        lambda t: flowing(t, published=8.0, ready=int(8 * t)),
        lambda t: flowing(t, published=8.0, taken=2.0, rejected=6.0),
        lambda t: flowing(t, published=0.0),
        lambda t: flowing(t, published=8.0, taken=8.0, ready=5 if int(t) % 10 else 0),
    ],
    ids=["all taken", "all kept", "rejected by consumers", "nothing comes", "figures that lag"],
)
def test_what_is_accounted_for_is_not(make):
    """Messages that consumers rejected were delivered: they are not those that vanish."""
    assert lost(make) is None


def test_a_single_purge_is_no_loss_that_lasts():
    """One step down, and over."""
    assert lost(lambda t: flowing(t, taken=8.0, ready=500 if t < 30 else 0)) is None


def test_a_burst_whose_number_comes_late_is_no_loss():
    """Published is current, the number of messages is refreshed seconds later: the next interval takes it back."""

    def make(t):
        number, told = (300 if t >= 30 else 0), (300 if t >= 35 else 0)
        return queue(messages_ready=told, stats=stats(publish=100 + number))

    for until in (30, 35, 40):
        assert lost(make, until) is None


def test_a_steady_queue_whose_figures_jitter_is_no_loss():
    """The number of messages lags by up to five seconds, now more and now less."""

    def make(t):
        lag = (0, 4, 1, 5, 2)[int(t / 5) % 5]
        return queue(messages_ready=int(20 * max(0.0, t - lag)), stats=stats(publish=int(100 + 20 * t)))

    assert [None] * 12 == [lost(make, until) for until in range(20, 80, 5)]


def test_numbers_that_are_not_told_are_no_zero():
    """A queue whose node is away has a history and no number."""
    view, first = seen(
        film(lambda t: frame(queue(messages_ready=None, messages=None, stats=stats(publish=int(t)))), 30)
    )

    assert balance(view.history(first)) is None
    assert losing(view, first) is None
