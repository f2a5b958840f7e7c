from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import Outcome
from probes.confirm_ledger import ConfirmLedger

LIMIT = 5.0

publishes = st.tuples(st.just("publish"), st.just(0))
singles = st.tuples(st.sampled_from(["ack", "nack"]), st.integers(0, 60))
multiples = st.tuples(st.sampled_from(["ack-multiple", "nack-multiple"]), st.integers(0, 60))
returns = st.tuples(st.just("return"), st.integers(0, 60))
waits = st.tuples(st.just("wait"), st.integers(1, 4))
unsent = st.tuples(st.just("unsent"), st.just(0))
acts = st.lists(st.one_of(publishes, publishes, publishes, singles, multiples, returns, waits, unsent), max_size=200)


@given(acts=acts, closes=st.booleans())
def test_every_message_has_exactly_one_outcome(acts, closes):
    """Acks, nacks, returns, timeouts and a closed channel may come in any order."""
    ledger, now, published, reported = ConfirmLedger(LIMIT), 0.0, 0, []
    owed = set()
    for act, value in acts:
        match act:
            case "publish":
                published += 1
                assert published == ledger.publish(now, now)
                owed.add(published)
            case "ack" | "nack" | "ack-multiple" | "nack-multiple":
                multiple = act.endswith("multiple")
                frame = ledger.settle(value, now, multiple=multiple, nacked=act.startswith("nack"))
                answered = {seq for seq in owed if (seq <= value or value == 0 if multiple else seq == value)}
                assert len(answered) == frame.covered
                owed -= answered
                reported += frame.settled
            case "return":
                ledger.returned(value)
            case "wait":
                now += value
                reported += ledger.expire(now)
            case "unsent":
                published += 1
                reported.append(ledger.never_sent(now, now, Outcome.TIMED_OUT))
                published -= 1
    in_time = {message.seq for message in reported if message.seq > 0}

    assert ledger.outstanding == published - len(in_time)
    assert ledger.outstanding + ledger.late == len(owed)

    if closes:
        reported += ledger.close()
        assert {message.seq for message in reported if message.seq > 0} == set(range(1, published + 1))
        assert ledger.outstanding == ledger.late == 0
    assert max(Counter(message.seq for message in reported).values(), default=1) == 1


@given(acts=acts)
def test_only_answered_messages_have_a_time_and_a_group(acts):
    """Acked, nacked and returned come from a frame; undecided and lost do not."""
    ledger, now, reported = ConfirmLedger(LIMIT), 0.0, []
    for act, value in acts:
        if act == "publish":
            ledger.publish(now, now)
        elif "ack" in act:
            reported += ledger.settle(value, now, multiple="multiple" in act, nacked="nack" in act).settled
        elif act == "wait":
            now += value
            reported += ledger.expire(now)
    reported += ledger.close()

    answered = {Outcome.ACKED, Outcome.NACKED, Outcome.RETURNED}

    assert all((message.at is not None) == (message.outcome in answered) for message in reported)
    assert all((message.group is not None) == (message.outcome in answered) for message in reported)
    assert all(message.group >= 1 for message in reported if message.group is not None)


def fresh(count):
    """Return a ledger with this many outstanding messages."""
    ledger = ConfirmLedger(LIMIT)
    for index in range(count):
        ledger.publish(index, index + 0.5)
    return ledger


def test_a_multiple_ack_covers_all_up_to_its_tag():
    """The group is all messages that the frame covers, and every message records it."""
    ledger = fresh(5)

    frame = ledger.settle(3, 10.0, multiple=True, nacked=False)

    assert [1, 2, 3] == [message.seq for message in frame.settled]
    assert {3} == {message.group for message in frame.settled}
    assert {True} == {message.multiple for message in frame.settled}
    assert ledger.outstanding == 2


def test_a_multiple_ack_after_single_ones_covers_the_rest():
    """Messages that were settled one by one are not in the group."""
    ledger = fresh(5)
    ledger.settle(2, 10.0, multiple=False, nacked=False)

    frame = ledger.settle(4, 11.0, multiple=True, nacked=False)

    assert [1, 3, 4] == [message.seq for message in frame.settled]
    assert frame.covered == 3


def test_tag_zero_with_multiple_answers_everything():
    """AMQP 0-9-1: delivery tag 0 with multiple means all outstanding messages."""
    assert len(fresh(4).settle(0, 9.0, multiple=True, nacked=True).settled) == 4


@pytest.mark.parametrize(("nacked", "outcome"), [(False, Outcome.RETURNED), (True, Outcome.NACKED)])
def test_a_return_before_the_ack_makes_it_returned(nacked, outcome):
    """The broker acks a returned message; it does not count as acked."""
    ledger = fresh(1)
    ledger.returned(1)

    assert [outcome] == [message.outcome for message in ledger.settle(1, 9.0, multiple=False, nacked=nacked).settled]


def test_a_late_ack_is_remembered_and_not_counted_again():
    """Undecided stays undecided; the frame still says how many messages it answered."""
    ledger = fresh(2)
    undecided = ledger.expire(100.0)

    frame = ledger.settle(2, 101.0, multiple=True, nacked=False)

    assert [Outcome.TIMED_OUT] * 2 == [message.outcome for message in undecided]
    assert (2, []) == frame
    assert ledger.late == 0


def test_a_message_ages_from_when_it_was_sent():
    """A late send does not shorten the broker's time to answer."""
    ledger = ConfirmLedger(LIMIT)
    ledger.publish(0.0, 4.0)

    assert [] == ledger.expire(8.9)
    assert len(ledger.expire(9.0)) == 1


def test_frames_for_unknown_tags_are_counted():
    """A frame that answers no message is counted."""
    ledger = fresh(1)
    ledger.settle(7, 1.0, multiple=False, nacked=False)

    assert ledger.strays == 1
    assert ledger.outstanding == 1
