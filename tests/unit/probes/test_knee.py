import pytest

from probes.saturation import SweepPoint, advise, saturation_point


def point(prefetch, busy, messages=100, seconds=1.0):
    """Return a prefetch value at which the consumer was busy for this share of the time."""
    return SweepPoint(
        prefetch=prefetch,
        messages=messages,
        seconds=seconds,
        busy=busy,
        unacked_p50=1.0,
        unacked_max=1.0,
        wait_p50=0.0,
        wait_p99=0.0,
        work=0.005,
    )


def test_the_knee_is_the_least_prefetch_within_5_percent_of_the_best():
    """A larger prefetch gives no more; the order of measurement does not matter."""
    points = [point(0, 0.99), point(100, 0.98), point(10, 0.95), point(5, 0.70), point(1, 0.3)]

    assert 10 == saturation_point(points, 0.005)


def test_a_slow_spell_of_the_machine_does_not_move_the_knee():
    """Fewer messages per second at the same busy share mean slow work, not a small prefetch."""
    points = [point(1, 0.5, 100), point(2, 0.97, 150), point(5, 0.98, 200)]

    assert 2 == saturation_point(points, 0.005)


def test_without_processing_time_the_throughput_decides():
    """The consumer is never busy then."""
    points = [point(1, 0.01, 100), point(10, 0.01, 960), point(100, 0.01, 1000)]

    assert 10 == saturation_point(points, 0.0)


def test_nothing_processed_gives_no_advice():
    """None, and a reason."""
    advice = advise([point(1, 0.0, messages=0)], 0.1, 0.004)

    assert (None, None, "nothing was processed") == (advice.knee, advice.recommended, advice.because)


@pytest.mark.parametrize(
    ("round_trip", "processing", "formula", "recommended"),
    [(0.100, 0.004, 26, 39), (0.0005, 0.005, 2, 3), (0.010, 0.010, 2, 3), (0.030, 0.001, 31, 47)],
)
def test_the_formula_is_round_trip_by_processing_time_plus_one(round_trip, processing, formula, recommended):
    """The result is rounded up, and 1.5 times that is recommended."""
    advice = advise([point(1, 0.9), point(1000, 0.9)], round_trip, processing)

    assert (formula, recommended) == (advice.formula, advice.recommended)
    assert f"+ 1 = {formula} messages keep the consumer busy" in advice.because


def test_a_measured_knee_above_the_formula_wins():
    """What was measured is what the consumer needs."""
    advice = advise([point(1, 0.1), point(50, 0.5), point(200, 0.9)], 0.0005, 0.005)

    assert (200, 2, 200) == (advice.knee, advice.formula, advice.recommended)
    assert "in the measurement it took 200" in advice.because


@pytest.mark.parametrize("processing", [0.0, 0.005])
def test_no_limit_is_never_recommended(processing):
    """Without a limit one consumer could hold the whole queue, so the largest measured limit is recommended."""
    advice = advise([point(1, 0.1, 10), point(500, 0.5, 50), point(0, 0.9, 100)], 0.0005, processing)

    assert (0, 500) == (advice.knee, advice.recommended)
    assert "hold the whole queue" in advice.because


def test_without_processing_time_there_is_no_formula():
    """The formula would divide by zero."""
    advice = advise([point(1, 0.9), point(10, 0.9, 1000)], 0.0005, 0.0)

    assert (10, None, 10) == (advice.knee, advice.formula, advice.recommended)
