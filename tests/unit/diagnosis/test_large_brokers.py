"""Brokers with too many queues to read all statistics at every poll: totals are fresh, statistics are older."""

from dataclasses import replace

import pytest

from ackscope.counters import MessageStats
from ackscope.snapshot import Part
from tests.unit.diagnosis.pictures import film, found, look, moment, queue, stuck, text
from tests.unit.diagnosis.test_no_consumer import lonely


def detailed_every(seconds, frame):
    """Return the same film with statistics read every few seconds and unchanged in between."""

    def seen(t):
        read = t - t % seconds
        then, now = frame(read), frame(t)
        queues = tuple(
            replace(old, messages=new.messages, messages_ready=new.messages_ready, details_at=moment(read))
            for old, new in zip(then["queues"], now["queues"], strict=True)
        )
        return {**now, "queues": queues}

    return seen


def totals(frame):
    """Return the same film without any statistics."""

    def seen(t):
        now = frame(t)
        queues = tuple(replace(each, consumers=None, stats=MessageStats(), memory=None) for each in now["queues"])
        return {**now, "queues": queues}

    return seen


def test_what_is_wrong_is_found_by_seldom_statistics_too():
    """A queue without consumers, read in full every 20 s."""
    assert [("no-consumer", "warning", "orders")] == found(look(film(detailed_every(20, lonely()), until=300)))


def test_statistics_that_were_not_read_again_are_no_standstill():
    """A consumer works, but its counters are one minute old at every poll."""
    works = stuck(0, ready=0)["queues"][0]

    def frame(t):
        counters = replace(works.stats, publish=100 + 5 * int(t), deliver=100 + 5 * int(t), ack=90 + 5 * int(t))
        return {**stuck(30), "queues": (replace(works, messages_unacked=10, messages_ready=5, stats=counters),)}

    assert [] == found(look(film(detailed_every(50, frame), until=190)))


def test_queues_of_which_only_totals_are_known_are_not_judged_and_that_is_said():
    """No rule reports them; the rules are inconclusive with the reason."""
    verdict = look(film(totals(lonely()), until=300))

    assert [] == found(verdict)
    facts = [
        each.facts for each in verdict.inconclusive if (each.rule, each.reason) == ("no-consumer", "stale_details")
    ]
    assert [{"queues": 1, "max_age_seconds": 60.0}] == facts


def test_statistics_that_are_too_old_are_no_ground_for_a_verdict():
    """The statistics were read once, five minutes ago."""
    verdict = look(film(detailed_every(1000, lonely()), until=300))

    assert [] == found(verdict)
    assert any("poll.budget" in text(gap).needs for gap in verdict.inconclusive)


def test_empty_queues_without_statistics_are_no_blind_spot():
    """100,000 idle queues do not make every diagnosis inconclusive."""
    idle = totals(lambda _: {"queues": tuple(queue(f"idle-{number}") for number in range(3))})

    assert not [gap for gap in look(film(idle, until=60)).inconclusive if gap.reason == "stale_details"]


def test_parts_that_are_read_seldom_are_fresh_for_two_of_their_intervals():
    """Queues are read every 90 s: they count after two minutes, but not after half an hour."""
    window = film(lonely(), until=360, every=90)
    for later, rules in ((150.0, ["no-consumer"]), (1800.0, [])):
        verdict = look(window, later=later)
        assert rules == [rule for rule, _, _ in found(verdict)]


@pytest.mark.parametrize(("every", "rules"), [(None, []), (30.0, []), (150.0, ["no-consumer"])])
def test_parts_that_are_to_be_read_seldom_from_now_on_are_fresh_until_then(every, rules):
    """Queues were read every 15 s; the broker is quiet now, and the next reading is planned after 150 s."""

    def frame(t):
        read = min(t, 60.0)
        return {**lonely()(t), "queues": Part(value=lonely()(read)["queues"], at=moment(read), every=every)}

    assert rules == [rule for rule, _, _ in found(look(film(frame, until=195, every=15)))]


def test_parts_that_are_read_often_are_old_after_a_minute():
    """After one minute their age only shows an outage."""
    assert [] == found(look(film(lonely(), until=360, every=5), later=61))
