import pytest

from ackscope.clock import Instant
from ackscope.records import Outcome, ProbeState
from probes.bursts import Burst
from probes.confirm_ledger import Settled
from probes.identity import Identity
from probes.recent_values import RecentValues
from probes.stream_stats import DeliveryCounts, MessageEntry, StreamStats

WHO = Identity(
    probe="confirm",
    stream="quorum",
    queue_type="quorum",
    vhost="/",
    queue="q",
    run_id="0" * 16,
    rate=5.0,
    payload_bytes=64,
)


def instant(mono):
    """Return an instant whose wall clock starts at a known second."""
    return Instant(wall=1_700_000_000.0 + mono, mono=mono)


def stats(span=60.0):
    """Return empty statistics."""
    return StreamStats(WHO, lag=RecentValues(), span=span)


def message(seq=1, outcome=Outcome.ACKED, intended=10.0, sent=10.01, at=10.05):
    """A settled message."""
    return Settled(seq, intended, sent, at, outcome, multiple=True, group=3)


def test_a_message_becomes_a_record_with_its_three_times_apart():
    """Send delay, confirm and response are separate; the wall clock only gives the date."""
    kept = stats()
    kept.enter(MessageEntry(2, message()))
    kept.aggregate(instant(11.0), 10)

    (record,), _, _ = kept.take(instant(11.0))

    assert record.send_delay == pytest.approx(0.01)
    assert record.confirm == pytest.approx(0.04)
    assert record.response == pytest.approx(0.05)
    assert record.intended_at == pytest.approx(1_700_000_010.0)
    assert (2, 1, True, 3) == (record.epoch, record.seq, record.multiple, record.group)


def test_a_message_without_answer_has_no_latency():
    """Absent is not zero."""
    kept = stats()
    kept.enter(MessageEntry(1, Settled(1, 10.0, 10.0, None, Outcome.LOST)))
    kept.aggregate(instant(11.0), 10)

    (record,), _, _ = kept.take(instant(11.0))
    outcome = kept.outcome(instant(11.0))

    assert record.confirm is None
    assert record.deliveries is None
    assert outcome.confirm.count == 0
    assert outcome.outcomes["lost"] == 1


def test_every_outcome_is_counted_also_those_that_are_zero():
    """So a reader can distinguish zero nacks from unknown nacks."""
    assert {outcome.value: 0 for outcome in Outcome} == stats().outcome(instant(1.0)).outcomes


def test_success_needs_messages_and_all_of_them_acked():
    """The stream must also be running now."""
    kept = stats()
    kept.running()

    assert kept.outcome(instant(10.0)).success is False

    kept.enter(MessageEntry(1, message()))
    kept.aggregate(instant(11.0), 10)

    assert kept.outcome(instant(11.0)).success is True

    kept.enter(MessageEntry(1, message(2, Outcome.NACKED)))
    kept.aggregate(instant(11.0), 10)

    assert kept.outcome(instant(11.0)).success is False


def test_success_comes_back_when_the_window_is_clean_again():
    """Totals stay, but success is judged over the last minute."""
    kept = stats()
    kept.running()
    kept.enter(MessageEntry(1, message(1, Outcome.NACKED)))
    kept.aggregate(instant(11.0), 10)
    kept.enter(MessageEntry(1, message(2)))
    kept.aggregate(instant(100.0), 10)

    outcome = kept.outcome(instant(101.0))

    assert outcome.success is True
    assert outcome.outcomes["nacked"] == 1


def test_a_confirmed_message_that_never_came_is_missing():
    """It spoils the success although it was acked."""
    kept = stats()
    kept.deliveries = DeliveryCounts()
    kept.running()
    kept.enter(MessageEntry(1, message(), deliveries=0))
    kept.aggregate(instant(50.0), 10)

    outcome = kept.outcome(instant(50.0))

    assert outcome.missing == 1
    assert outcome.success is False


def test_without_awaited_deliveries_there_are_no_counts_of_them():
    """None, not zero."""
    outcome = stats().outcome(instant(1.0))

    assert [None] * 4 == [outcome.missing, outcome.redeliveries, outcome.duplicates, outcome.out_of_order]


def test_blocked_time_adds_up_while_and_after():
    """The time under an alarm is reported during the alarm, and added to the total."""
    kept = stats()
    kept.running()
    kept.blocked("low on memory", 10.0)
    kept.blocked("low on disk", 12.0)
    during = kept.outcome(instant(15.0))
    kept.unblocked(20.0)
    after = kept.outcome(instant(99.0))

    assert during.state is ProbeState.BLOCKED
    assert during.blocked_seconds == pytest.approx(5.0)
    assert "low on disk" in (during.reason or "")
    assert after.state is ProbeState.RUNNING
    assert after.blocked_seconds == pytest.approx(10.0)


def test_a_connection_lost_under_an_alarm_ends_the_blocked_time():
    """Without a connection nothing is known to be blocked."""
    kept = stats()
    kept.blocked("low on memory", 10.0)
    kept.failed("gone", 11.0)

    outcome = kept.outcome(instant(50.0))

    assert outcome.state is ProbeState.FAILED
    assert outcome.blocked_seconds == pytest.approx(1.0)


def test_digest_works_in_slices():
    """A large group of acks does not stall the loop: the rest is processed in the next tick."""
    kept = stats()
    for seq in range(10):
        kept.enter(MessageEntry(1, message(seq)))
    kept.aggregate(instant(11.0), 4)

    assert kept.ready == 4
    assert kept.waiting == 10


def test_what_was_taken_is_not_handed_on_twice():
    """Records and bursts are handed on once."""
    kept = stats()
    kept.enter(MessageEntry(1, message()))
    kept.burst(Burst(10.0, 2, 1, 40, 0.2, 0.0001))
    kept.aggregate(instant(11.0), 10)
    _, (burst,), _ = kept.take(instant(11.0))

    assert (40, 0.2) == (burst.messages, burst.interval)
    assert burst.at == pytest.approx(1_700_000_010.0)
    assert ([], [], []) == kept.take(instant(12.0))
