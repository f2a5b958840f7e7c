import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.own import found, only, urgent
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    PEER,
    WALL,
    channel,
    connection,
    consumer,
    film,
    look,
    queue,
    stats,
    stuck,
    told,
)


def test_a_consumer_that_hangs_is_found_within_half_a_minute():
    """Twenty seconds of full prefetch and no acknowledgement, while messages wait; some are enough to mention it."""
    assert [] == found(look(film(stuck, until=70)))
    assert [("stuck-consumer", "info", "orders")] == found(look(film(stuck, until=75)))
    assert "a long job looks the same for that long" in only(look(film(stuck, until=75))).summary
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(stuck, until=85)))


def test_the_finding_names_the_culprit_and_how_to_free_the_messages():
    """Tag, application, host, channel, and both ways to close its connection."""
    text = told(only(look(film(stuck, until=90))))

    assert "consumer 'ctag1' of 'billing' at 10.0.0.7:50001" in text
    assert CHANNEL in text
    assert "api/connections/10.0.0.7%3A50001%20-%3E%2010.0.0.1%3A5672" in text
    assert f"rabbitmqctl list_connections pid name | grep -F -- '{PEER}'" in text
    assert "redelivered=true" in text


def test_since_is_what_the_broker_says_of_the_idle_channel():
    """It does not drift as the window moves on."""
    moments = {only(look(film(stuck, until=until))).since for until in (90, 120, 300, 900)}

    assert {"2027-01-15T08:01:01Z"} == moments


def test_without_idle_since_it_takes_what_was_seen():
    """A channel that also does other work is not idle; twenty seconds of our own then decide."""
    assert [] == urgent(look(film(lambda t: stuck(t, idle=False), until=80)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(lambda t: stuck(t, idle=False), until=90)))


def test_one_look_says_how_long_it_looked():
    """Two readings eight seconds apart are enough to name it, and the finding tells the eight seconds."""
    window = film(stuck, start=62, until=70, every=8)

    finding = only(look(window, thresholds=Thresholds.one_shot()))

    assert "seen over 8 s" in finding.summary


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("capacity", [None, 0.0, 1.0])
def test_the_type_of_queue_and_its_capacity_make_no_difference(kind, capacity):
    """`consumer_capacity` is constant for quorum queues: it must not matter."""
    window = film(lambda t: stuck(t, of={"type": kind, "consumer_capacity": capacity}), until=90)

    assert [("stuck-consumer", "critical", "orders")] == found(look(window))


def test_a_consumer_that_never_acknowledged_is_stuck_too():
    """The ack counter does not exist before the first one: that is 0, and it stays 0."""

    def frame(t):
        counters = stats(publish=int(20 + 5 * t), deliver=10, deliver_get=10)
        return {
            "queues": (queue(messages_ready=int(10 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, stats=stats(deliver=10)),),
        }

    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=30)))


def test_one_stuck_consumer_among_working_ones_is_a_warning():
    """The queue moves, and ten of its messages do not."""

    def frame(t):
        theirs, mine = stats(deliver=int(110 + 5 * t), ack=int(100 + 5 * t)), stats(deliver=15, ack=5)
        both = stats(publish=int(130 + 5 * t), deliver=int(125 + 5 * t), ack=int(105 + 5 * t))
        return {
            "queues": (queue(consumers=2, messages_unacked=20, stats=both),),
            "consumers": (consumer(), consumer(tag="ctag2", channel_name="10.0.0.8:1 -> b (1)")),
            "channels": (
                channel(messages_unacked=10, idle_since=WALL, stats=mine),
                channel("10.0.0.8:1 -> b (1)", messages_unacked=10, stats=theirs),
            ),
            "connections": (connection(),),
        }

    finding = only(look(film(frame, until=40)))

    assert ("stuck-consumer", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "1 of its 2 consumers holds 10 messages" in finding.summary
    assert "'ctag1' of 'billing'" in told(finding)
    assert "ctag2" not in told(finding)


def test_without_a_prefetch_limit_it_takes_a_minute():
    """Deliveries go on, all of them stay held, and none is acknowledged."""

    def frame(t):
        counters = stats(publish=int(10 + 5 * t), deliver=int(10 + 5 * t))
        return {
            "queues": (queue(messages_unacked=int(10 + 5 * t), stats=counters),),
            "consumers": (consumer(prefetch_count=0),),
            "channels": (channel(messages_unacked=int(10 + 5 * t), stats=counters),),
        }

    assert [] == urgent(look(film(frame, until=50)))
    assert [("stuck-consumer", "warning", "orders")] == urgent(look(film(frame, until=75)))


def test_a_limit_shared_by_the_channel_counts():
    """Before 4.0 a channel could share its prefetch; then the consumer's own figure is 0."""

    def frame(t):
        picture = stuck(t, on={"prefetch_count": 0})
        return {**picture, "channels": (channel(messages_unacked=10, global_prefetch_count=10, idle_since=WALL),)}

    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=90)))


def test_a_frozen_client_is_told_from_a_hanging_handler():
    """Bytes that it does not read: the whole process stands."""
    window = film(lambda t: stuck(t, through={"send_pend": 140_000}), until=90)

    assert "the whole process is frozen" in only(look(window)).cause
