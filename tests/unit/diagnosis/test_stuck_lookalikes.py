import pytest

from ackscope.snapshot import Overview, Part
from tests.unit.diagnosis.consumers.own import ever, found, only, urgent
from tests.unit.diagnosis.pictures import ALARM, WALL, WORKED, channel, consumer, film, look, queue, stats, stuck


def test_a_slow_consumer_is_not_stuck():
    """One acknowledgement every twelve seconds is slow; it is given time by its own pace."""

    def frame(t):
        acked = 5 + int(t / 12)
        counters = stats(publish=int(100 + 5 * t), deliver=acked + 10, ack=acked)
        return {
            "queues": (queue(messages_ready=int(80 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, idle_since=WALL + 12 * int(t / 12), stats=counters),),
        }

    verdicts = [look(film(frame, until=until)) for until in range(60, 200, 5)]

    assert {"slow-consumer"} == ever(verdicts)


def test_a_very_slow_consumer_is_given_three_of_its_pauses():
    """One acknowledgement every forty seconds: forty seconds of silence prove nothing."""

    def frame(t):
        acked = 5 + int(t / 40)
        counters = stats(publish=int(100 + 5 * t), deliver=acked + 10, ack=acked)
        return {
            "queues": (queue(messages_ready=int(80 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, idle_since=WALL + 40 * int(t / 40), stats=counters),),
        }

    verdicts = [look(film(frame, until=until)) for until in range(125, 500, 25)]

    assert ever(verdicts) <= {"slow-consumer"}


def test_a_long_job_with_prefetch_one_is_given_more_time_and_never_critical():
    """One job at a time may take a minute; then it is worth a look, and the cause says what it may be."""
    assert [] == found(look(film(lambda t: stuck(t, prefetch=1), until=115)))

    finding = only(look(film(lambda t: stuck(t, prefetch=1), until=130)))

    assert "warning" == finding.severity
    assert "one long job looks the same" in finding.cause


def test_a_long_job_for_which_nobody_waits_is_left_alone():
    """Prefetch 1 and an empty queue: that is how a quiet worker looks."""
    window = film(lambda t: stuck(t, prefetch=1, ready=0), until=400)

    assert [] == found(look(window))


def test_a_full_consumer_for_which_nobody_waits_is_a_warning_later():
    """Ten held messages and none acknowledged in a minute; but nothing grows."""
    assert [] == found(look(film(lambda t: stuck(t, ready=0), until=110)))
    assert [("stuck-consumer", "warning", "orders")] == found(look(film(lambda t: stuck(t, ready=0), until=130)))


def test_a_consumer_that_is_not_full_is_not_stuck():
    """It holds less than it may: the broker, not the consumer, is the one that waits."""
    window = film(lambda t: stuck(t, on={"prefetch_count": 50}), until=120)

    assert [] == found(look(window))


@pytest.mark.parametrize(
    "change",
    [
        {"on": {"ack_required": False}},
        {"on": {"active": False}},
        {"of": {"type": "stream"}},
        {"through": {"state": "blocked"}},
    ],
    ids=["automatic acknowledgement", "standby", "stream", "blocked by an alarm"],
)
def test_consumers_that_need_not_or_cannot_acknowledge_are_not_judged(change):
    """Each has another reason for its silence."""
    assert [] == found(look(film(lambda t: stuck(t, **change), until=120)))


def test_an_alarm_is_told_and_not_the_consumers_it_silences():
    """Acknowledgements on a blocked connection are not read: one cause, one finding."""

    def frame(t):
        return {**stuck(t, through={"state": "blocked"}), "health": (ALARM,)}

    verdict = look(film(frame, until=120))

    assert "memory-alarm" in [finding.rule for finding in verdict.findings]
    assert [] == found(verdict)


def test_during_an_alarm_an_unknown_connection_is_not_judged():
    """Whether the broker reads its acknowledgements cannot be told then."""

    def frame(t):
        return {**stuck(t), "connections": Part(error="timed out"), "health": (ALARM,)}

    verdict = look(film(frame, until=120))

    assert "memory-alarm" in [finding.rule for finding in verdict.findings]
    assert [] == found(verdict)


def test_acknowledgements_in_an_open_transaction_are_no_standstill():
    """The consumer did acknowledge; its transaction is open."""

    def frame(t):
        picture = stuck(t)
        return {**picture, "channels": (channel(messages_unacked=10, acks_uncommitted=4),)}

    assert [] == found(look(film(frame, until=120)))


def test_messages_that_no_channel_holds_are_not_the_consumers_doing():
    """The queue counts them as held and no channel does: an orphan of the broker's."""

    def frame(t):
        return {**stuck(t), "channels": (channel(messages_unacked=0),)}

    assert [] == found(look(film(frame, until=120)))


def test_a_consumer_without_limit_that_rejects_everything_is_not_stuck():
    """Rejected messages are not counted as acknowledged, but they do not stay held either."""

    def frame(t):
        counters = stats(publish=int(10 + 5 * t), deliver=int(10 + 5 * t))
        return {
            "queues": (queue(messages_unacked=3, stats=counters),),
            "consumers": (consumer(prefetch_count=0),),
            "channels": (channel(messages_unacked=3, stats=counters),),
        }

    assert [] == urgent(look(film(frame, until=120)))


def test_a_broker_that_stopped_counting_is_not_a_stuck_consumer():
    """All figures stand, and no channel is idle: then the figures are old, not the consumers stuck."""

    def frame(t):
        still = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", stats=stats(publish=1))
        counters = stats(publish=100, deliver=60, ack=50)
        return {
            "overview": still,
            "queues": (queue(messages_ready=40, messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, stats=counters),),
        }

    assert [] == found(look(film(frame, until=120)))


def test_a_restart_of_the_broker_begins_anew():
    """Twenty seconds must be seen in the present life of the counters."""

    def frame(t):
        picture = stuck(WORKED + 1 + t, idle=False)
        if t >= 50:
            picture["queues"] = (queue(messages_ready=300, messages_unacked=10, stats=stats(publish=int(t))),)
        return picture

    assert [] == urgent(look(film(frame, until=65)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=75)))


def test_the_waiting_consumers_of_the_workload_are_not_reported():
    """A consumer with an empty queue is idle too, and holds nothing."""

    def frame(_):
        return {
            "queues": (queue(stats=stats(ack=5, deliver=5)),),
            "consumers": (consumer(),),
            "channels": (channel(idle_since=WALL),),
        }

    assert [] == found(look(film(frame, until=300)))
