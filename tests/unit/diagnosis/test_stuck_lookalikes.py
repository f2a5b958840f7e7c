import pytest

from ackscope.snapshot import Overview, Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import (
    ALARM,
    WALL,
    WORKED,
    channel,
    connection,
    consumer,
    film,
    look,
    moment,
    queue,
    stats,
    stuck,
    text,
)

ONCE = Thresholds.as_if_lasting()


def test_a_slow_consumer_is_not_stuck():
    """One acknowledgement every 12 s is slow; the limit follows the consumer's own pace."""

    def frame(t):
        acked = 5 + int(t / 12)
        counters = stats(publish=int(100 + 5 * t), deliver=acked + 10, ack=acked)
        return {
            "queues": (queue(messages_ready=int(80 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, idle_since=WALL + 12 * int(t / 12), stats=counters),),
        }

    results = [look(film(frame, until=until)) for until in range(60, 200, 5)]

    assert {"slow-consumer"} == ever(results)


def test_a_very_slow_consumer_has_three_of_its_intervals():
    """With one acknowledgement every 40 s, 40 s without one prove nothing."""

    def frame(t):
        acked = 5 + int(t / 40)
        counters = stats(publish=int(100 + 5 * t), deliver=acked + 10, ack=acked)
        return {
            "queues": (queue(messages_ready=int(80 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, idle_since=WALL + 40 * int(t / 40), stats=counters),),
        }

    results = [look(film(frame, until=until)) for until in range(125, 500, 25)]

    assert ever(results) <= {"slow-consumer"}


def test_a_long_job_with_prefetch_1_has_a_minute_and_is_critical_when_it_outlasts_all_others():
    """The cause says that a long job looks the same, until it has taken 7.5 min after many of less than a second."""
    early = only(look(film(lambda t: stuck(t, prefetch=1), until=115)))
    late = only(look(film(lambda t: stuck(t, prefetch=1), until=540)))

    assert ("info", "critical") == (early.severity, late.severity)
    assert "one long job looks the same" not in text(late).cause

    finding = only(look(film(lambda t: stuck(t, prefetch=1), until=130)))

    assert "warning" == finding.severity
    assert finding.facts["one_at_a_time"]
    assert "one long job looks the same" in text(finding).cause


def test_one_look_at_a_long_job_says_what_it_saw():
    """With a backlog that grows it is information, which says that a long job looks the same; with none, nothing."""

    def once(ready):
        return look(film(lambda t: stuck(t, prefetch=1, idle=False, ready=ready), 97, 7.0, 90.0), thresholds=ONCE)

    grows, idle = once(None), once(0)

    assert ([("stuck-consumer", "info", "orders")], []) == (found(grows), found(idle))
    assert "a long job" in text(only(grows)).summary


def test_a_long_job_while_no_message_is_ready_is_no_finding():
    """A worker with prefetch 1 and an empty queue is normal."""
    window = film(lambda t: stuck(t, prefetch=1, ready=0), until=400)

    assert [] == found(look(window))


def test_a_full_consumer_while_no_message_is_ready_is_a_warning_after_a_minute():
    """It holds ten messages and acknowledges none, but the queue does not grow."""
    assert [] == found(look(film(lambda t: stuck(t, ready=0), until=110)))
    assert [("stuck-consumer", "warning", "orders")] == found(look(film(lambda t: stuck(t, ready=0), until=130)))


def test_a_consumer_that_is_not_full_is_not_stuck():
    """It holds less than its prefetch, so it waits for the broker."""
    window = film(lambda t: stuck(t, on={"prefetch_count": 50}), until=120)

    assert [] == found(look(window))


@pytest.mark.parametrize(
    "change",
    [
        {"on": {"ack_required": False}},
        {"on": {"active": False}},
        {"through": {"state": "blocked"}},
    ],
    ids=["automatic acknowledgement", "standby", "blocked by an alarm"],
)
def test_consumers_that_need_not_or_cannot_acknowledge_are_not_judged(change):
    """Each has another reason not to acknowledge."""
    assert [] == found(look(film(lambda t: stuck(t, **change), until=120)))


def test_an_alarm_is_reported_and_not_the_consumers_that_it_blocks():
    """The broker does not read acknowledgements on a blocked connection."""

    def frame(t):
        return {**stuck(t, through={"state": "blocked"}), "health": (ALARM,)}

    result = look(film(frame, until=120))

    assert "memory-alarm" in [finding.rule for finding in result.findings]
    assert [] == found(result)


def test_during_an_alarm_an_unknown_connection_is_not_judged():
    """It is not known whether the broker reads its acknowledgements."""

    def frame(t):
        return {**stuck(t), "connections": Part(error="timed out"), "health": (ALARM,)}

    result = look(film(frame, until=120))

    assert "memory-alarm" in [finding.rule for finding in result.findings]
    assert [] == found(result)


def test_acknowledgements_in_an_open_transaction_are_no_stall():
    """The consumer acknowledged, but did not commit."""

    def frame(t):
        picture = stuck(t)
        return {**picture, "channels": (channel(messages_unacked=10, acks_uncommitted=4),)}

    assert [] == found(look(film(frame, until=120)))


def test_messages_that_no_channel_holds_are_not_caused_by_the_consumers():
    """The queue counts them as unacknowledged, and no channel does."""

    def frame(t):
        return {**stuck(t), "channels": (channel(messages_unacked=0),)}

    assert [] == found(look(film(frame, until=120)))


def test_a_consumer_without_limit_that_rejects_everything_is_not_stuck():
    """Rejected messages do not count as acknowledged, but they do not stay unacknowledged either."""

    def frame(t):
        counters = stats(publish=int(10 + 5 * t), deliver=int(10 + 5 * t))
        return {
            "queues": (queue(messages_unacked=3, stats=counters),),
            "consumers": (consumer(prefetch_count=0),),
            "channels": (channel(messages_unacked=3, stats=counters),),
        }

    assert [("reject-loss", "critical", "orders")] == urgent(look(film(frame, until=120)))


def test_a_broker_that_stopped_counting_is_not_a_stuck_consumer():
    """No figure changes and no channel is idle, so the statistics are old."""

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


def test_after_a_restart_of_the_broker_watching_starts_over():
    """40 s must be seen since the counters were reset, because no acknowledgement was seen since then."""

    def frame(t):
        picture = stuck(WORKED + 1 + t, idle=False)
        if t >= 50:
            picture["queues"] = (queue(messages_ready=300, messages_unacked=10, stats=stats(publish=int(t))),)
        return picture

    assert [] == urgent(look(film(frame, until=85)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=95)))


def test_an_idle_consumer_of_an_empty_queue_is_no_finding():
    """An idle consumer holds no messages."""

    def frame(_):
        return {
            "queues": (queue(stats=stats(ack=5, deliver=5)),),
            "consumers": (consumer(),),
            "channels": (channel(idle_since=WALL),),
        }

    assert [] == found(look(film(frame, until=300)))


def held_by_two(t, *, acked=0, more=0.0, each=13, prefetch=15, name="review", ready=0):
    """Two workers that hold some messages each, from before the first reading; nothing is ready."""
    names = ("10.0.0.1:5000 -> b", "10.0.0.2:5000 -> b")
    held = 2 * each + int(more * t)
    counters = stats(publish=held + acked, deliver=held + acked, **({"ack": acked} if acked else {}))
    own = stats(deliver=each + acked // 2, **({"ack": acked // 2} if acked else {}))
    return {
        "queues": (
            queue(name, type="quorum", consumers=2, messages_ready=ready, messages_unacked=held, stats=counters),
        ),
        "consumers": tuple(
            consumer(name, tag=one, channel_name=f"{one} (1)", connection_name=one, prefetch_count=prefetch)
            for one in names
        ),
        "channels": tuple(
            channel(f"{one} (1)", messages_unacked=held // 2, stats=own, idle_since=WALL - 60) for one in names
        ),
        "connections": tuple(connection(one, client_name=f"worker-{one[7]}") for one in names),
    }


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({}, ["info"]),
        ({"each": 5, "prefetch": 50, "name": "q-1"}, ["info"]),
        ({"acked": 40}, []),
        ({"more": 0.2, "prefetch": 200}, []),
        ({"each": 1}, []),
    ],
    ids=["never acknowledged", "other numbers", "acknowledged before", "collects a batch", "one job each"],
)
def test_messages_that_workers_hold_and_never_acknowledged_are_information(fields, severity):
    """No backlog shows it; long jobs look the same."""
    found_now = [
        each.severity
        for each in look(film(lambda t: held_by_two(t, **fields), until=110)).findings
        if each.rule == "stuck-consumer"
    ]

    assert severity == found_now


@pytest.mark.parametrize(("prefetch", "rate"), [(20, 7.0), (100, 40.0)])
def test_one_look_at_a_stream_reader_that_never_acknowledges_is_critical(prefetch, rate):
    """The queue's past is known from its samples, and the channel is read a moment after the queue."""

    def frame(t):
        mine = stats(deliver=prefetch)
        reader = channel(messages_unacked=prefetch, stats=mine)
        log = queue(
            "log", type="stream", messages_ready=int(rate * t), stats=stats(publish=int(rate * t), deliver=prefetch)
        )
        if t < 54:
            return {"queues": (log,), "channels": Part(), "consumers": Part()}
        return {
            "queues": (log,),
            "channels": Part(value=(reader,), at=moment(t + 0.3), seconds=0.1),
            "consumers": (consumer("log", prefetch_count=prefetch),),
        }

    (finding,) = [each for each in look(film(frame, until=60)).findings if each.rule == "stuck-consumer"]

    assert "critical" == finding.severity


@pytest.mark.parametrize(("acked", "never"), [(0, True), (7, False)])
def test_a_reader_that_never_acknowledged_has_no_shorter_time_than_its_connection(acked, never):
    """The broker renews since when a channel is idle once a minute; what it never did began with the channel."""

    def frame(t):
        ready = int(8 * t)
        mine = channel(messages_unacked=50, stats=stats(deliver=50 + acked, ack=acked), idle_since=WALL + 70)
        log = queue("ledger.log", type="stream", messages_ready=ready, stats=stats(publish=ready, deliver=50 + acked))
        reader = consumer("ledger.log", prefetch_count=50)
        there = connection(client_name="ledger-reader", connected_at=WALL - 400)
        return {"queues": (log,), "channels": (mine,), "consumers": (reader,), "connections": (there,)}

    (finding,) = [each for each in look(film(frame, until=120)).findings if each.rule == "stuck-consumer"]

    assert never == ("none acked since its channel was opened (connected 9 min ago)" in text(finding).summary)
    assert never != ("none acked for at least" in text(finding).summary)
