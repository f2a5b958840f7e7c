from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackscope.snapshot import Overview, Part, Queue
from diagnosis import queue_age
from diagnosis.queue_age import Bounds, QueueAge, QueueAges
from diagnosis.queue_flow import POINTS
from tests.unit.diagnosis.pictures import moment, queue, snapshot, stats

TICK = 5.0
"""Seconds between two refreshes of the broker's statistics."""


class Model:
    """A queue that is first in, first out: seconds of its publishes, and of its departures in the same order."""

    def __init__(self, published, left):
        self.published, self.left = published, left

    def read(self, at, phase=0.0, lag=4.0, **fields):
        """Return what the management API says at `at`: counters of the latest tick, and an older count of messages."""
        tick = phase + TICK * ((at - phase) // TICK)
        messages = bisect_right(self.published, tick - lag) - bisect_right(self.left, tick - lag)
        counters = stats(publish=bisect_right(self.published, tick), ack=bisect_right(self.left, tick))
        return queue(messages=messages, messages_ready=messages, stats=counters, **fields)

    def true_age(self, at):
        """Return the age of the oldest message; None if there is none."""
        gone = bisect_right(self.left, at)
        return at - self.published[gone] if gone < bisect_right(self.published, at) else None


def age_of(ages: QueueAges, at: float, *queues: Queue) -> QueueAge:
    """Add a reading; return the age of the first queue."""
    found = ages.add(snapshot(at, queues=queues))
    return found[queues[0].key]


def watched(model, until, every=5.0, ages=None, **fields):
    """Poll a model; return the age and the true age at each poll."""
    ages, found, last = ages or QueueAges(), [], None
    ages.add(snapshot(0.0, queues=()))
    for poll in range(1, int(until / every)):
        at = poll * every
        read = model.read(at, **fields)
        last = last if read == last else read
        found.append((age_of(ages, at, last), model.true_age(at), moment(at)))
    return found


POLL = 5.0
"""Seconds between two polls; inside of one the flow counts as even, so bursts can exceed a bound by that much."""


def holds(bounds, true):
    """Return whether the true age is within the bounds."""
    return bounds.lower - 0.01 <= true and (bounds.upper is None or true <= bounds.upper + 0.01)


def flow(rate, seconds):
    """Return the times of messages that come evenly."""
    return [number / rate for number in range(int(rate * seconds))]


@pytest.mark.parametrize("rate", [1, 20, 500])
@pytest.mark.parametrize("phase", [0.0, 2.5, 4.9])
@pytest.mark.parametrize("speed", [0.0, 0.5, 1.0, 1.5])
def test_the_true_age_lies_within_narrow_bounds(rate, phase, speed):
    """Growing, steady, draining and standing still; whenever within its refresh the broker is read."""
    began = 60.0
    published = flow(rate, 200)
    departed = [began + number / (rate * speed) for number in range(int(140 * rate * speed))] if speed else []
    found = watched(Model(published, departed), 200, phase=phase)
    known = [(age.head_age(at), true) for age, true, at in found[2:] if true is not None and age.head is not None]
    within = [holds(*each) for each in known]
    narrow = [bounds.upper is not None and bounds.upper - bounds.lower < 10 for bounds, _ in known]

    assert len(known) > 20
    assert sum(within) >= 0.95 * len(within)
    assert sum(narrow) >= 0.8 * len(narrow)


GAPS = st.lists(st.floats(0.0, 40.0), min_size=1, max_size=60)


@settings(deadline=None)
@given(GAPS, st.floats(0.0, 4.9), st.floats(0.0, 4.9), st.integers(0, 40))
def test_whatever_the_arrivals_the_lower_bound_of_a_queue_that_stands_still_holds(gaps, phase, lag, taken):
    """Any history of publishes, polled with any skew; then nothing leaves. The upper bound needs an even flow."""
    published = list(accumulate(gaps, initial=1.0))
    left = [published[-1] + 1.0] * min(taken, len(published))
    age, true, at = watched(Model(published, left), published[-1] + 60, phase=phase, lag=lag)[-1]

    bounds = age.head_age(at)
    if true is None:
        assert bounds == Bounds()
    else:
        assert bounds.lower is None or bounds.lower - POLL <= true


@settings(deadline=None)
@given(GAPS, st.floats(0.5, 20.0), st.randoms(use_true_random=False))
def test_the_lower_bound_holds_in_whatever_order_messages_leave(gaps, hold, chance):
    """The oldest of those that are left is at least as old as if the oldest had left first."""
    published = list(accumulate(gaps, initial=1.0))
    order = chance.sample(range(len(published)), len(published) // 2)
    left = sorted(published[-1] + 1.0 + hold * 0.01 * place for place in range(len(order)))
    age, _, at = watched(Model(published, left), published[-1] + 90)[-1]
    oldest = at.mono - moment(min(published[it] for it in range(len(published)) if it not in order)).mono

    bounds = age.head_age(at)
    assert bounds.lower is None or bounds.lower - POLL <= oldest


def test_before_the_first_reading_only_the_lower_bound_is_known():
    """The exporter starts beside a queue with a backlog."""
    ages = QueueAges()
    age_of(ages, 0, queue(messages=100, stats=stats(publish=500, ack=400)))
    age = age_of(ages, 20, queue(messages=100, stats=stats(publish=500, ack=400)))

    assert Bounds(20.0, None) == age.head_age(moment(20))
    assert (queue_age.FIRST_MINUTES,) == age.reasons


def test_once_its_backlog_has_left_the_age_is_known():
    """50 messages a second in and out, and 100 were there before."""
    ages, seen = QueueAges(), {}
    for at in range(0, 60, 5):
        seen[at] = age_of(ages, at, queue(messages=100, stats=stats(publish=500 + 50 * at, ack=400 + 50 * at)))

    assert (queue_age.FIRST_MINUTES,) == seen[0].reasons
    assert () == seen[30].reasons
    bounds = seen[55].head_age(moment(55))
    assert bounds.lower <= 2.0 <= bounds.upper <= 10


def test_an_empty_queue_has_no_oldest_message():
    """Nor a reason: nothing is unknown."""
    ages = QueueAges()
    age_of(ages, 0, queue(stats=stats(publish=5, ack=5)))
    age = age_of(ages, 5, queue(stats=stats(publish=9, ack=9)))

    assert Bounds() == age.head_age(moment(5))
    assert () == age.reasons


def test_a_counter_that_restarted_begins_a_new_history():
    """The broker's statistics were lost, its messages were not."""
    ages = QueueAges()
    for at in range(0, 40, 5):
        age_of(ages, at, queue(messages=10, stats=stats(publish=100 + at, ack=90 + at)))
    age = age_of(ages, 40, queue(messages=10, stats=stats(publish=1, ack=1)))

    assert (queue_age.RESTARTED,) == age.reasons
    assert age.head_age(moment(40)).upper is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"arguments": {"x-max-priority": 5}}, queue_age.PRIORITIES),
        ({"stats": stats(publish=200, ack=100, redeliver=3)}, queue_age.REDELIVERED),
    ],
)
def test_where_messages_leave_out_of_order_the_upper_bound_is_unknown(fields, reason):
    """An older message may be left."""
    ages = QueueAges()
    ages.add(snapshot(-5, queues=()))
    for at in range(0, 40, 5):
        age_of(ages, at, queue(messages=100, stats=stats(publish=100 + 2 * at, ack=2 * at)))
    age = age_of(ages, 40, queue(messages=100, **{"stats": stats(publish=200, ack=100), **fields}))

    assert reason in age.reasons
    lower, upper = age.head_age(moment(40))
    assert lower is not None
    assert upper is None


def test_what_a_full_queue_refuses_counts_as_published_so_nothing_is_known():
    """`reject-publish`: publishes are counted, and the messages never came in."""
    ages, full = QueueAges(), {"arguments": {"x-overflow": "reject-publish", "x-max-length": 50}}
    for at in range(0, 60, 5):
        age = age_of(ages, at, queue(messages=50, stats=stats(publish=50 + 20 * at), **full))

    assert (queue_age.REFUSED,) == age.reasons
    assert Bounds() == age.head_age(moment(55))


@pytest.mark.parametrize(("fields", "reason"), [({"type": "stream"}, "stream"), ({"messages": None}, "no_statistics")])
def test_what_is_inconclusive_has_its_reason(fields, reason):
    """Streams hold what was consumed; a queue without counts is not an empty one."""
    age = age_of(QueueAges(), 0, queue(**fields))

    assert QueueAge(reasons=(reason,)) == age


def test_a_broker_without_statistics_gives_no_age():
    """Counters that are not kept are not counters that stand still."""
    picture = snapshot(0, queues=(queue(messages=5),))
    quiet = replace(picture, overview=Part(value=Overview(statistics=False), at=moment(0)))

    assert [QueueAge(reasons=("no_statistics",))] == list(QueueAges().add(quiet).values())


def test_dead_letters_are_arrivals_that_nobody_counted():
    """Only the change of the messages shows them: 2 a second, nothing leaves until then."""
    ages = QueueAges()
    age_of(ages, 0, queue(messages=0))
    for at in range(5, 65, 5):
        age = age_of(ages, at, queue(messages=max(0, 2 * (at - 4))))
    bounds = age.head_age(moment(60))

    assert bounds.lower <= 60 <= bounds.upper + 10
    assert bounds.lower >= 40


def test_purged_messages_are_gone():
    """What is published afterwards is young."""
    ages = QueueAges()
    ages.add(snapshot(-5, queues=()))
    for at in range(0, 60, 5):
        age_of(ages, at, queue(messages=10 * at, stats=stats(publish=10 * at)))
    for at in range(60, 120, 5):
        age = age_of(ages, at, queue(messages=10 * (at - 60), stats=stats(publish=10 * at)))
    bounds = age.head_age(moment(115))

    assert 40 <= bounds.lower <= 55 <= bounds.upper <= 70


def test_the_sojourn_time_is_that_of_what_left_lately():
    """A steady backlog of 20 s."""
    model = Model(flow(10, 300), [20 + each for each in flow(10, 280)])
    age, _, at = watched(model, 200)[-1]
    middle, worst = age.sojourn(0.5, at), age.sojourn(0.99, at)

    assert middle.lower <= 20 <= middle.upper
    assert middle.upper <= worst.upper < 31


def test_nothing_left_lately_has_no_sojourn_time():
    """A minute later what left is forgotten."""
    ages = QueueAges()
    for at in range(0, 20, 5):
        age = age_of(ages, at, queue(stats=stats(publish=at, ack=at)))

    assert 0.0 == age.sojourn(0.5, moment(15)).lower
    assert Bounds() == age.sojourn(0.5, moment(90))


def test_the_time_to_empty_is_backlog_by_net_rate():
    """300 messages, 15 a second fewer: 20 s; and none while it grows."""
    ages = QueueAges()
    for at in range(0, 40, 5):
        age = age_of(ages, at, queue(messages=825 - 15 * at, stats=stats(publish=10 * at, ack=25 * at)))
    assert 20 == pytest.approx(age.drain_seconds, rel=0.2)

    for at in range(40, 80, 5):
        age = age_of(ages, at, queue(messages=300 + 5 * at, stats=stats(publish=15 * at, ack=900 + at)))
    assert age.drain_seconds is None


def test_memory_is_bounded_and_old_heads_stay_known():
    """Two hours of a queue that grows at an uneven rate."""
    published = list(accumulate((0.5 + (number % 7) / 3 for number in range(4700)), initial=0.0))
    ages = QueueAges()
    age, true, at = watched(Model(published, []), 7200, ages=ages)[-1]

    assert all(len(it.flow._at) <= POINTS for it in ages._queues.values())
    assert holds(age.head_age(at), true)
    assert age.head_age(at).upper - age.head_age(at).lower < 0.05 * true


def test_an_unchanged_queue_grows_older_without_a_new_look():
    """The same object, as in the window: only the time of the list differs."""
    ages, same = QueueAges(), queue(messages=3, stats=stats(publish=3))
    ages.add(snapshot(0, queues=()))
    for at in range(5, 305, 5):
        age = age_of(ages, at, same)

    assert 4 == len(ages._queues[same.key].flow.readings)
    assert Bounds(295.0, pytest.approx(305.3, abs=1)) == age.head_age(moment(300))


def test_a_failed_poll_changes_nothing():
    """The part is that of before."""
    ages = QueueAges()
    first = ages.add(snapshot(0, queues=(queue(),)))
    repeated = replace(snapshot(5), queues=snapshot(0, queues=(queue(),)).queues)

    assert first is ages.add(repeated)


def test_a_queue_that_is_gone_is_forgotten():
    """Declared again, it has no history."""
    ages = QueueAges()
    age_of(ages, 0, queue("a"), queue("b"))

    assert {("/", "b")} == set(ages.add(snapshot(5, queues=(queue("b"),))))
    assert {("/", "b")} == set(ages._queues)
