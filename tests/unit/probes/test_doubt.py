import pytest

from ackscope.records import Quantiles
from probes.self_error import doubt_of_messages, doubt_of_steps, duration


def of(p50=None, p99=None, count=1000):
    """Return the quantiles that doubt_of_messages reads."""
    return Quantiles(count=count, p50=p50, p90=p99, p99=p99, max=p99)


def test_a_quick_probe_beside_a_slow_broker_is_trusted():
    """A send delay of 2 ms is negligible compared with confirms of 300 ms."""
    assert doubt_of_messages(confirm=of(0.3, 0.4), send_delay=of(1e-4, 0.002), loop_lag=of(1e-4, 0.002)) is None


def test_less_than_a_millisecond_is_always_bearable():
    """Timers are no more precise than that, and no conclusion depends on it."""
    assert doubt_of_messages(confirm=of(0.0005, 0.001), send_delay=of(1e-4, 0.0009), loop_lag=of(1e-4, 0.0009)) is None


def test_steps_are_doubted_by_the_quickest_of_them():
    """Loop lag is compared with the shortest median; steps that never succeeded are ignored."""
    steps = [of(0.02, 0.03), of(0.2, 0.3), of(count=0)]

    assert doubt_of_steps(steps=steps, loop_lag=of(1e-4, 0.0019)) is None
    assert "timer loop late by p99 2.50 ms, limit for a median step of 20.0 ms: 2.00 ms" in (
        doubt_of_steps(steps=steps, loop_lag=of(1e-4, 0.0025))
    )


def test_without_a_step_that_ended_nothing_is_known():
    """All steps failed, or none was tried yet."""
    assert "no step completed" == doubt_of_steps(steps=[of(count=0)], loop_lag=of(1e-4, 1e-4))


def test_a_late_sender_is_reported_with_its_figures():
    """The sentence has the measured delay and the acceptable one."""
    reported = doubt_of_messages(confirm=of(0.02, 0.05), send_delay=of(1e-4, 0.013), loop_lag=of(1e-4, 1e-4))

    assert reported == (
        "the probe itself was slow (sent late by p99 13.0 ms, limit for a median confirm of 20.0 ms: 2.00 ms)"
    )


def test_a_late_loop_is_reported():
    """Acks that are read late make the broker look slow."""
    reported = doubt_of_messages(confirm=of(0.002, 0.05), send_delay=of(1e-4, 1e-4), loop_lag=of(1e-4, 0.03))

    assert reported is not None
    assert "timer loop late by p99 30.0 ms" in reported


@pytest.mark.parametrize(("count", "p90", "is_good"), [(84, 1e-4, True), (84, 0.003, False), (100, 1e-4, False)])
def test_one_late_message_does_not_condemn_a_slow_stream(count, p90, is_good):
    """Below 100 values the p99 is the largest one, so the p90 is compared; more late messages are still reported."""
    sent = Quantiles(count=count, p50=1e-4, p90=p90, p99=0.005, max=0.005)
    reported = doubt_of_messages(confirm=of(0.001, 0.005, count=count), send_delay=sent, loop_lag=of(1e-4, 1e-4))

    assert is_good == (reported is None)


def test_few_messages_prove_nothing():
    """Even the p90 of three messages is just the maximum."""
    reported = doubt_of_messages(confirm=of(0.002, 0.005, count=3), send_delay=of(), loop_lag=of())

    assert reported == "only 3 messages settled; at least 20 are needed"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0 us"),
        (42e-6, "42 us"),
        (0.0009996, "1.00 ms"),
        (0.00234, "2.34 ms"),
        (0.0456, "45.6 ms"),
        (0.456, "456 ms"),
        (1.5, "1.50 s"),
        (61.23, "61.2 s"),
        (1234.0, "1234 s"),
    ],
)
def test_durations_read_well(seconds, text):
    """Three digits and the unit that fits."""
    assert text == duration(seconds)
