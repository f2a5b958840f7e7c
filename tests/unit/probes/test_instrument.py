import selectors

import pytest

from probes.instrument import PERIOD, LoopLag, new_loop


def test_a_loop_that_wakes_on_time_has_no_lag():
    """Each sample is as late as the loop's wake-up."""
    lag = LoopLag(0.0, span=None)
    for _ in range(100):
        lag.look(lag.due)

    assert lag.recent.summary(1.0).max == 0.0
    assert lag.recent.summary(1.0).count == 100


def test_a_long_stall_weighs_as_much_as_it_lasted():
    """Every sample missed in the stall counts with its own delay; otherwise one stall would not show in the p99."""
    lag = LoopLag(0.0, span=None)
    for _ in range(100):
        lag.look(lag.due)
    stalled = lag.due + 1.0
    lag.look(stalled)
    summary = lag.recent.summary(stalled)

    assert summary.count == pytest.approx(100 + 1.0 / PERIOD, abs=1)
    assert summary.max == 1.0
    assert summary.p90 is not None
    assert summary.p90 > 0.7


def test_a_stall_without_end_does_not_stall_the_look():
    """After a day of sleep, the number of counted samples is bounded."""
    lag = LoopLag(0.0, span=None)
    lag.look(86_400.0)

    assert lag.recent.summary(86_400.0).count == 1000
    assert lag.due > 86_400.0


def test_the_loop_has_exact_timers():
    """The epoll selector would round every timer up to whole milliseconds."""
    loop = new_loop()
    try:
        assert isinstance(loop._selector, selectors.SelectSelector)
    finally:
        loop.close()
