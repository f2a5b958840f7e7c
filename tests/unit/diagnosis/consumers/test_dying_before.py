"""Consumers that died again and again before a look, in the samples that the broker keeps: consumers are unknown."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Part, Snapshot
from diagnosis.brief import diagnose_briefly
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.test_dying_consumers import dying
from tests.unit.diagnosis.pictures import channel, connection, consumer, moment, queue, snapshot, stats, text


def one_look(frame, at, begin=0.0):
    """The result of two readings, after samples of queues every 5 s of the last minute and every 60 s before."""
    window = Window.empty("shop")
    past = [*(at - age for age in range(600, 60, -60)), *(at - age for age in range(60, 0, -5))]
    for second in [each for each in past if each >= begin]:
        queues = tuple(replace(each, consumers=None) for each in frame(second)["queues"])
        window = window.add(
            Snapshot(cluster="shop", taken=moment(second), queues=Part(value=queues, at=moment(second)))
        )
    for second in (at, at + 6):
        window = window.add(snapshot(second, **frame(second)))
    return diagnose_briefly(window, (), window.latest.taken)


def about(result):
    """The finding of consumer-flapping; None without one."""
    return next((each for each in flat(result.findings) if each.rule == "consumer-flapping"), None)


@pytest.mark.parametrize(
    "pause", [{"lives": 0.4, "away": 5.3}, {"lives": 2.0, "away": 9.0}, {"lives": 4.0, "away": 3.0}]
)
@pytest.mark.parametrize("prefetch", [1, 25])
@pytest.mark.parametrize("at", [51, 93, 300])
def test_one_look_finds_a_queue_whose_consumer_dies_on_the_same_messages(pause, prefetch, at):
    """It has lasted before the look, so it is urgent at once."""
    finding = about(one_look(dying(prefetch=prefetch, name="tickets", **pause), at))

    assert ("tickets", True) == (finding.subject.name, finding.severity in {"warning", "critical"})
    assert "makes no progress" in text(finding).summary
    assert at < 60 or "critical" == finding.severity


def test_a_fault_that_has_just_begun_is_information():
    """A failed deployment looks the same."""
    finding = about(one_look(dying(lives=0.4, away=5.3, prefetch=1), 10))

    assert finding is None or "info" == finding.severity


def test_consumers_that_acknowledge_are_making_progress():
    """However often they come."""
    assert about(one_look(dying(lives=0.4, away=5.3, acked=8), 93)) is None


def requeueing(t):
    """A consumer that stays, and returns each message at once."""
    taken = int(20 * t)
    counters = stats(publish=40 + int(t), deliver=taken, redeliver=max(0, taken - 1), ack=0)
    return {
        "queues": (queue("bounce", consumers=1, messages_ready=40 + int(t), messages_unacked=0, stats=counters),),
        "consumers": (consumer("bounce"),),
        "channels": (channel(stats=stats(deliver=taken, redeliver=max(0, taken - 1))),),
        "connections": (connection(client_name="bouncer"),),
    }


def test_a_consumer_that_stays_and_requeues_is_a_requeue_loop():
    """It is the same in both readings."""
    result = one_look(requeueing, 93)

    assert about(result) is None
    assert "requeue-loop" in {each.rule for each in flat(result.findings)}


def test_a_consumer_that_works_for_long_is_none():
    """It holds what it was sent; nothing comes back."""
    assert about(one_look(dying(lives=1000.0, away=1.0), 93)) is None
