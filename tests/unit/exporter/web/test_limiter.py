from exporter.web.limiter import RateLimiter
from tests.unit.exporter.made import SetClock


def test_a_burst_and_then_one_an_interval():
    """Unused requests accumulate up to the burst."""
    clock = SetClock()
    limiter = RateLimiter(2.0, 3, clock)
    at_once = [limiter.admit() for _ in range(4)]
    clock.mono += 1
    too_soon = limiter.admit()
    clock.mono += 1
    again = [limiter.admit() for _ in range(2)]
    clock.mono += 1000
    later = [limiter.admit() for _ in range(4)]

    assert [True, True, True, False] == at_once == later
    assert (False, [True, False]) == (too_soon, again)


def test_no_interval_is_no_limit():
    """As the toolkit has it."""
    limiter = RateLimiter(0.0, 0, SetClock())

    assert all(limiter.admit() for _ in range(1000))
