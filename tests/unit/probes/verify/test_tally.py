from probes.verify.frame_counters import out_of_order, quantile, spread, tallied
from probes.verify.frames import Confirm, Delivery


def confirm(tag, *, multiple=False, nacked=False, at=0.0):
    """A confirm frame."""
    return Confirm(tag=tag, multiple=multiple, nacked=nacked, at=at)


def test_multiple_settles_everything_outstanding_up_to_its_number():
    """This includes messages after one that was settled alone."""
    tally = tallied([confirm(2), confirm(4, multiple=True), confirm(5)])

    assert {1, 2, 3, 4, 5} == tally.acked
    assert [] == tally.again
    assert (3, 3) == (tally.frames, tally.covered)


def test_acks_and_nacks_of_a_mix_are_distinguished():
    """A nack with `multiple` takes only what no ack took before it."""
    tally = tallied([confirm(1), confirm(3), confirm(4, multiple=True, nacked=True)])

    assert {1, 3} == tally.acked
    assert {2, 4} == tally.nacked


def test_a_message_settled_twice_is_seen():
    """It must not happen, so nothing may hide it: neither the same answer again nor the other one."""
    assert [1] == tallied([confirm(1), confirm(1)]).again
    assert [2] == tallied([confirm(2, multiple=True), confirm(2, nacked=True)]).again


def test_latencies_are_of_what_is_settled():
    """Frames are read in two parts with others in between; open messages have no latency."""
    log = [confirm(1, at=1.5)]
    tally = tallied(log)
    log += [Delivery(tag=9, body=b"", redelivered=False), confirm(2, at=4.0)]
    tally.update(log)

    assert 2 == tally.settled
    assert [0.5, 2.0] == tally.latencies({1: 1.0, 2: 2.0, 3: 3.0})


def test_a_late_lower_number_is_out_of_order():
    """Each is reported with the highest that came before."""
    assert [] == out_of_order([confirm(1), confirm(4), confirm(5)])
    assert [(6, 2), (6, 3)] == out_of_order([confirm(1), confirm(6), confirm(2), confirm(3)])


def test_a_spread_names_its_count():
    """Nothing measured is said, not shown as zero."""
    assert "none measured" == spread([])
    assert "lowest 1.00, p50 2.00, p99 3.00, highest 3.00 ms of 3" == spread([0.003, 0.001, 0.002])
    assert 5.0 == quantile([5.0], 0.99)
