import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import Outcome
from probes.bursts import GAP, Burst, BurstJoiner
from probes.confirm_ledger import Settled


def test_frames_close_together_are_one_burst():
    """Frames closer than the gap are joined; the burst counts their messages."""
    joiner = BurstJoiner(gap=0.001)
    for at, messages, multiple in ((1.0, 16, True), (1.0002, 1, False), (1.0004, 3, True)):
        assert joiner.frame(at, messages, multiple=multiple) is None

    burst = joiner.flush(1.01)

    assert burst == Burst(1.0, 3, 2, 20, None, pytest.approx(0.0004))


def test_the_interval_is_from_first_frame_to_first_frame():
    """The interval shows how far apart the broker's batches are."""
    joiner = BurstJoiner(gap=0.001)
    joiner.frame(1.0, 1, multiple=False)
    joiner.frame(1.0005, 1, multiple=False)
    first = joiner.frame(1.2, 40, multiple=True)
    second = joiner.flush(1.3)

    assert first is not None
    assert first.interval is None
    assert second is not None
    assert second.interval == pytest.approx(0.2)


def test_a_burst_that_is_not_over_is_not_reported():
    """More frames may still come."""
    joiner = BurstJoiner()
    joiner.frame(1.0, 1, multiple=False)

    assert joiner.flush(1.0 + GAP / 2) is None
    assert joiner.flush(1.0 + 2 * GAP) is not None
    assert joiner.flush(9.0) is None


def test_a_burst_tells_how_latency_follows_from_the_time_of_sending():
    """Slope 1 means that each second sent earlier is a second waited longer, as when all wait for one write."""
    joiner = BurstJoiner()
    settled = [Settled(seq, 0.0, 1.0 + seq * 0.01, 2.0, Outcome.ACKED) for seq in range(10)]
    joiner.frame(2.0, 10, multiple=True, settled=settled)
    burst = joiner.flush(3.0)

    assert burst is not None
    assert burst.slope == pytest.approx(1.0)
    assert (burst.least, burst.most) == pytest.approx((0.91, 1.0))


def test_equal_latencies_have_no_slope():
    """The slope is 0 if latency does not depend on the sending time, and None with too few messages."""
    joiner = BurstJoiner()
    for seq in range(5):
        sent = 1.0 + seq * 0.0005
        joiner.frame(sent + 0.1, 1, multiple=False, settled=[Settled(seq, sent, sent, sent + 0.1, Outcome.ACKED)])
    burst = joiner.flush(2.0)
    joiner.frame(5.0, 1, multiple=False, settled=[Settled(9, 4.0, 4.0, 5.0, Outcome.ACKED)])
    single = joiner.flush(6.0)

    assert burst is not None
    assert burst.slope == pytest.approx(0.0, abs=1e-6)
    assert single is not None
    assert single.slope is None


def test_a_burst_remembers_that_messages_were_kept_back():
    """Only the following burst is marked."""
    joiner = BurstJoiner()
    joiner.full()
    joiner.frame(1.0, 1, multiple=False)
    first = joiner.frame(2.0, 1, multiple=False)
    second = joiner.flush(3.0)

    assert [True, False] == [burst.full for burst in (first, second) if burst is not None]


@given(st.lists(st.tuples(st.floats(0, 0.01), st.integers(0, 50), st.booleans()), max_size=100))
def test_no_frame_and_no_message_is_lost_or_reported_twice(steps):
    """All bursts together contain the messages of all frames."""
    joiner, now, bursts = BurstJoiner(), 0.0, []
    for step, messages, multiple in steps:
        now += step
        bursts.append(joiner.frame(now, messages, multiple=multiple))
    bursts.append(joiner.flush(now + 1))
    reported = [burst for burst in bursts if burst is not None]

    assert len(steps) == sum(burst.frames for burst in reported)
    assert sum(messages for _, messages, _ in steps) == sum(burst.messages for burst in reported)
    assert sum(multiple for _, _, multiple in steps) == sum(burst.multiple_frames for burst in reported)
    assert all(burst.span < burst.frames * GAP for burst in reported)
