"""The ledger of a queue against a model of a broker: it never counts a loss that is none, and finds those that are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.ledger import ledger, levels, losing, may_have_lost
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Timestamped
from tests.unit.diagnosis.pictures import film, moment, queue, stats
from tests.unit.diagnosis.queue_model import QueueModel

numbers = st.integers(0, 60)
settling = st.sampled_from(["publish", "deliver", "ack", "requeue", "take"])
"""What happens to a queue without a loss."""

phases = st.tuples(*[st.floats(0.0, 5.0)] * 3)
second = st.lists(st.tuples(settling, numbers), max_size=4)
seconds = st.lists(second, min_size=12, max_size=60)


def polls(model, story, every=5, quiet=25):
    """Return the readings of a queue while a story goes on, a step a second, and then nothing happens for a while."""
    model.refresh(0.0)
    readings = [Timestamped(moment(0), model.read())]
    for at in range(1, len(story) + quiet + 1):
        for name, number in story[at - 1] if at <= len(story) else []:
            getattr(model, name)(number)
        model.refresh(float(at))
        if at % every == 0:
            readings.append(Timestamped(moment(at), model.read()))
    return tuple(readings)


QUIET = [[]] * 15
"""Seconds in which nothing happens, and all statistics are refreshed."""


@given(story=seconds, late=phases)
def test_any_history_without_a_loss_balances(story, late):
    """Publishes, deliveries, settles, deaths of consumers and polls, in any order and with any delay of statistics."""
    model = QueueModel(phases=late)

    found = ledger(polls(model, [*QUIET, *story]))

    assert (0, 0, 0, 0) == (found.discarded, found.discarded_error, found.vanished, found.vanished_error)


@given(story=seconds, late=phases)
def test_meanwhile_no_more_is_missing_than_moved_within_two_intervals(story, late):
    """Counters and lengths are refreshed every 5 s, and polled every 5 s."""
    model = QueueModel(phases=late)
    readings = polls(model, [*QUIET, *story])

    for until in range(4, len(readings) + 1):
        at = 5 * (until - 1) - len(QUIET)
        moved = sum(number for step in story[max(0, at - 15) : max(0, at)] for _, number in step)
        found = ledger(readings[:until])
        assert found.proven_discarded <= moved
        assert found.proven_vanished <= moved


@given(story=seconds, late=phases, lost=st.integers(1, 500))
def test_messages_removed_without_a_cause_are_counted_once_the_queue_is_quiet(story, late, lost):
    """To the last one."""
    model = QueueModel(phases=late)

    found = ledger(polls(model, [*QUIET, *story, [("publish", lost), ("drop", lost)]]))

    # Messages that were requeued count as discarded until they are delivered again; the total is exact.
    assert found.vanished + found.discarded == sum(model.lost.values())
    assert found.vanished_error == 0


@given(rejected=st.integers(1, 200), late=phases, acked=st.integers(0, 200))
def test_rejected_messages_are_counted_to_the_last_one(rejected, late, acked):
    """Delivered, and neither acknowledged nor unacknowledged nor ready."""
    model = QueueModel(phases=late)
    step = [("publish", rejected + acked), ("deliver", rejected + acked), ("ack", acked), ("reject", rejected)]

    found = ledger(polls(model, [*[[]] * 12, step]))

    assert (rejected, 0) == (found.discarded, found.vanished)


@given(story=seconds, late=phases, arrivals=st.lists(numbers, min_size=5, max_size=10))
def test_dead_letters_that_arrive_are_never_a_loss(story, late, arrivals):
    """They come in without a publish, so they can only lower what is missing."""
    model = QueueModel(phases=late)
    for number in arrivals:
        model.dead_letter_in(number)
    found = ledger(polls(model, [[("dead_letter_in", n), *step] for n, step in zip(arrivals, story, strict=False)]))

    assert (0, 0) == (found.proven_discarded, found.proven_vanished)


def test_a_purge_is_counted_exactly():
    """Nothing else moves."""
    model = QueueModel()
    model.publish(845)
    found = ledger(polls(model, [*[[]] * 12, [("drop", 845)]]))

    assert (845, 0, 0) == (found.vanished, found.vanished_error, found.discarded)


def test_a_burst_is_no_loss_while_its_counters_are_ahead():
    """10,000 publishes are counted, and the length of the queue is not refreshed yet."""
    model = QueueModel(phases=(0.0, 0.0, 4.0))
    found = ledger(polls(model, [*[[]] * 14, [("publish", 10_000)]], quiet=0))

    assert 0 == found.proven_vanished


def test_dead_letters_that_the_source_holds_are_not_lost():
    """With the at-least-once strategy they stay in the queue, neither ready nor unacknowledged."""

    def seen(at, held):
        counters = stats(publish=at * 10, deliver=at * 10)
        return Timestamped(moment(at), queue(type="quorum", messages_dlx=held, stats=counters))

    found = ledger((seen(0, 0), seen(10, 100)))

    assert (0, 100) == (found.discarded, found.stored)


def test_without_lengths_nothing_is_known():
    """A queue whose lengths were not read, a stream, and a single reading."""
    unknown = queue(messages_ready=None, messages_unacked=None, stats=stats(publish=3))

    assert levels(unknown) is None
    assert levels(queue(type="stream")) is None
    assert ledger((Timestamped(moment(0), unknown), Timestamped(moment(5), unknown))) is None
    assert ledger((Timestamped(moment(0), queue()),)) is None


def test_a_new_queue_begins_empty():
    """The broker reports its lengths and counters some seconds late; what is lost until then is counted."""
    model = QueueModel()
    for name in ("publish", "deliver", "reject"):
        getattr(model, name)(30)
    new = Timestamped(moment(-5), queue(messages_ready=None, messages_unacked=None))

    assert 30 == ledger((new, *polls(model, [[]] * 12))).discarded


def test_a_queue_that_lost_nothing_is_left_alone_without_a_history():
    """The counters since it was declared balance."""
    kept = queue("kept", messages_ready=3, stats=stats(publish=10, deliver=7, ack=7))
    vanished = queue("vanished", stats=stats(publish=10, deliver=7, ack=7))
    rejected = queue("rejected", stats=stats(publish=10, deliver=10, ack=7))
    window = film(lambda _: {"queues": (kept, vanished, rejected)}, until=0)
    view = View(window, (), window.latest.taken, Thresholds())

    assert [vanished, rejected] == [each for each in view.queues if may_have_lost(view, each)]


def test_a_loss_lasts_from_the_reading_before_it_to_the_one_that_shows_all_of_it():
    """So the time of the finding is not longer than what was seen."""
    model = QueueModel()
    model.publish(50)
    readings = polls(model, [[]] * 11 + [[("drop", 20)]])

    assert [moment(10), moment(15)] == [seen.at for seen in losing(readings, lambda each: each.vanished, 20)]


@pytest.mark.parametrize(("ahead", "final"), [(117, 92), (56, 28), (3000, 2100)])
def test_a_loss_lasts_until_the_deliveries_that_explain_a_shorter_queue_are_counted(ahead, final):
    """The length of a queue is refreshed seconds before them, and then more seems lost than is."""
    lost = [(10, 0), (15, ahead), (20, final), (25, final)]
    readings = [
        Timestamped(moment(second), queue("orders", messages_ready=0, stats=stats(publish=many)))
        for second, many in lost
    ]

    run = losing(tuple(readings), lambda each: each.vanished, final)

    assert [moment(10), moment(15), moment(20)] == [seen.at for seen in run]
