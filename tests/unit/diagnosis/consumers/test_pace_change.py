"""What slow-consumer says about the time before a queue began to grow."""

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.consumers.films import busy
from tests.unit.diagnosis.consumers.results import only
from tests.unit.diagnosis.pictures import film, look, moment, queue, stats, text

CHANGED = 300.0
"""Second of the film at which something changes."""


def changing(*, comes, goes, held=(1, 10), consumers=(1, 1), sampled=False, of=None):
    """Return a film in which `comes` and `goes` a second, messages held and consumers change at one moment.

    Args:
        comes: published a second, before and after.
        goes: acknowledged a second, before and after.
        held: unacknowledged messages, before and after; a function of time before, or a number.
        consumers: how many there are, before and after.
        sampled: whether the time before is known from the broker's samples, which tell no consumers.
        of: other fields of the queue.
    """

    def total(rates, t):
        return int(rates[0] * min(t, CHANGED) + rates[1] * max(0.0, t - CHANGED))

    def frame(t):
        late = t > CHANGED
        number = consumers[late]
        picture = busy(consumers=number, prefetch=10)(t)
        acked, published = total(goes, t), total(comes, t)
        unacked = held[late](t) if callable(held[late]) else held[late]
        counters = stats(publish=published + unacked, ack=acked, deliver=acked + unacked, deliver_get=acked + unacked)
        picture["queues"] = (
            queue(
                "dedup.match",
                consumers=None if sampled and not late else number,
                messages_ready=max(0, published - acked),
                messages_unacked=unacked,
                stats=counters,
                **(of or {}),
            ),
        )
        for each in picture["consumers"]:
            object.__setattr__(each, "queue", "dedup.match")
        return picture

    return frame


def change(frame, until=CHANGED + 40):
    """Return what changed, and the causes that the text names."""
    everything = flat(look(film(frame, until=until)).findings)
    (finding,) = (each for each in everything if each.rule == "slow-consumer")
    return finding.facts["change"], text(finding).cause


def test_a_consumer_that_became_slower_is_told_with_both_figures_and_the_moment():
    """It acknowledged 8 a second of 8, holding one or none; now 5 a second, holding all it may."""
    found, cause = change(changing(comes=(8.0, 8.0), goes=(8.0, 5.0)))

    assert (True, False, False) == tuple(found[key] for key in ("slower", "rose", "fewer"))
    assert moment(CHANGED).iso() == found["until"]
    assert found["seconds_per_message"] <= 0.125
    assert "The consumer became slower, the load is about the same" in cause
    assert "takes 200 ms for one message" in cause
    assert "The load rose" not in cause


def test_a_load_that_rose_is_told_with_both_figures():
    """The consumer does no less than before."""
    found, cause = change(changing(comes=(4.0, 11.0), goes=(4.0, 8.0), held=(2, 10)))

    assert (False, True, False) == tuple(found[key] for key in ("slower", "rose", "fewer"))
    assert "The load rose: before " in cause
    assert "only 4/s were published; that many these consumers would still handle" in cause
    assert "slower" not in cause


def test_both_are_told_where_both_changed():
    """A load of 4 a second was handled in 10 ms a message; of 11 a second only 5 are handled."""
    found, cause = change(changing(comes=(12.0, 22.0), goes=(12.0, 5.0)))

    assert (True, True) == (found["slower"], found["rose"])
    assert "became slower, and the load rose" in cause


def test_a_rate_that_was_always_low_tells_by_what_was_held():
    """It was idle nearly always (0.5 a second, none held at a reading), and takes 4 s a message now."""
    found, _ = change(changing(comes=(0.5, 1.2), goes=(0.5, 0.25), held=(0, 10)), until=CHANGED + 100)

    assert found["slower"]


def test_consumers_that_left_are_no_slower_handler():
    """Each of the two that are left does what it did."""
    found, cause = change(changing(comes=(20.0, 20.0), goes=(20.0, 10.0), held=(10, 20), consumers=(4, 2)))

    assert (False, False, True) == tuple(found[key] for key in ("slower", "rose", "fewer"))
    assert "Consumers left: before " in cause
    assert "there were 4" in cause


def test_the_samples_of_the_broker_leave_open_whether_consumers_left():
    """They have no consumers."""
    found, cause = change(changing(comes=(8.0, 8.0), goes=(8.0, 5.0), sampled=True))

    assert (None, False, False) == tuple(found[key] for key in ("slower", "rose", "fewer"))
    assert "each became slower, or some of them left" in cause


def test_where_only_one_consumer_gets_messages_the_samples_suffice():
    """A standby that left changes nothing."""
    single = {"arguments": {"x-single-active-consumer": True}}
    found, _ = change(changing(comes=(8.0, 8.0), goes=(8.0, 5.0), sampled=True, of=single))

    assert found["slower"]


@pytest.mark.parametrize(
    ("comes", "goes"),
    [((5.1, 5.9), (5.1, 5.0)), ((0.0, 8.0), (0.0, 5.0)), ((0.05, 8.0), (0.05, 5.0))],
    ids=["hardly anything changed", "nothing came before", "too little came before"],
)
def test_what_chance_explains_or_is_not_known_is_left_open(comes, goes):
    """The cause has the rates of now only."""
    found, cause = change(changing(comes=comes, goes=goes, held=(5, 10)))

    assert found is None
    assert "before" not in cause


def test_a_film_that_begins_with_growth_has_no_time_before():
    """Nothing is known to compare with."""
    finding = only(look(film(busy(), until=200)))

    assert finding.facts["change"] is None
