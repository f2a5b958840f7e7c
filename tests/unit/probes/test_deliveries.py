from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import Outcome
from probes.confirm_ledger import Settled
from probes.deliveries import Matcher
from probes.stream_stats import DeliveryCounts

LIMIT = 10.0


def settled(seq, outcome=Outcome.ACKED, sent=1.0):
    """A message with its outcome."""
    at = sent + 0.001 if outcome in {Outcome.ACKED, Outcome.NACKED, Outcome.RETURNED} else None
    return Settled(seq, sent, sent, at, outcome, multiple=False, group=1)


def test_a_delivery_after_the_confirm_completes_the_message():
    """Confirm and delivery are reported together, with the time from sent to delivered."""
    matcher = Matcher(LIMIT)

    assert matcher.settled(1, settled(1)) is None

    entry = matcher.delivered(1, 1, 1.5, redelivered=False)

    assert entry is not None
    assert (0.5, 1, False, False) == (entry.delivery, entry.deliveries, entry.redelivered, entry.out_of_order)


def test_a_confirm_after_the_delivery_completes_it_too():
    """A ready consumer often receives a message before its publisher gets the confirm."""
    matcher = Matcher(LIMIT)

    assert matcher.delivered(1, 1, 1.5, redelivered=False) is None

    entry = matcher.settled(1, settled(1))

    assert entry is not None
    assert entry.delivery == 0.5


def test_confirmed_and_never_delivered_is_missing():
    """It is reported once, with zero deliveries."""
    matcher = Matcher(LIMIT)
    matcher.settled(1, settled(1))

    assert [] == matcher.expire(10.9)
    assert [0] == [entry.deliveries for entry in matcher.expire(11.0)]
    assert [] == matcher.expire(99.0)


def test_nothing_is_awaited_of_a_refused_message():
    """A nack ends the message; no delivery is missing."""
    entry = Matcher(LIMIT).settled(1, settled(1, Outcome.NACKED))

    assert entry is not None
    assert entry.deliveries is None


def test_a_second_delivery_is_a_duplicate():
    """The redelivered flag does not matter; it has a counter of its own."""
    matcher = Matcher(LIMIT)
    matcher.settled(1, settled(1))
    matcher.delivered(1, 1, 1.5, redelivered=False)

    assert matcher.delivered(1, 1, 2.0, redelivered=True) is None
    assert DeliveryCounts(redeliveries=1, duplicates=1, out_of_order=0) == matcher.counts


def test_a_lost_message_that_arrives_is_no_duplicate():
    """The broker still had the message: its first delivery came after it was reported as lost."""
    matcher = Matcher(LIMIT)
    matcher.settled(1, settled(1, Outcome.LOST))
    matcher.delivered(1, 1, 2.0, redelivered=False)

    assert matcher.counts.duplicates == 0


def test_a_message_behind_a_later_one_is_out_of_order():
    """The order is that of publishing, across epochs too; a redelivery of an old message does not count."""
    matcher = Matcher(LIMIT)
    for epoch, seq in ((1, 1), (1, 3), (1, 2), (2, 1), (1, 2)):
        matcher.delivered(epoch, seq, 2.0, redelivered=False)

    assert matcher.counts.out_of_order == 1


events = st.lists(
    st.one_of(
        st.tuples(st.just("settle"), st.integers(1, 20), st.sampled_from(Outcome)),
        st.tuples(st.just("deliver"), st.integers(1, 20), st.booleans()),
        st.tuples(st.just("wait"), st.integers(1, 20), st.none()),
    ),
    max_size=120,
)


@given(events)
def test_every_settled_message_is_reported_exactly_once(events):
    """The order of confirm and delivery does not matter, and one of them may never come."""
    matcher, now, done, reported = Matcher(LIMIT), 1.0, set(), []
    for act, seq, value in events:
        if act == "settle" and seq not in done:
            done.add(seq)
            reported.append(matcher.settled(1, settled(seq, value, sent=now)))
        elif act == "deliver":
            reported.append(matcher.delivered(1, seq, now, redelivered=value))
        elif act == "wait":
            now += seq
            reported += matcher.expire(now)
    reported += matcher.expire(now + 2 * LIMIT)
    counts = Counter(entry.settled.seq for entry in reported if entry is not None)

    assert done == set(counts)
    assert max(counts.values(), default=1) == 1
    assert matcher.pending == 0
