import pytest

from ackscope.findings import Certainty, Involved, QueueRef
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import found, only, urgent
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    PEER,
    WALL,
    channel,
    connection,
    consumer,
    evidence,
    film,
    look,
    queue,
    stats,
    stuck,
    text,
)


def test_a_consumer_that_hangs_is_found_within_30_seconds():
    """Critical after 20 s of full prefetch, ready messages and no acknowledgement; information before that."""
    assert [] == found(look(film(stuck, until=70)))
    assert [("stuck-consumer", "info", "orders")] == found(look(film(stuck, until=75)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(stuck, until=85)))

    early = only(look(film(stuck, until=75)))

    assert (Certainty.EARLY, 20.0) == (early.certainty, early.facts["warning_after_seconds"])


def test_the_finding_identifies_the_consumer():
    """By its tag, application, host, channel and connection, with what it holds and since when."""
    finding = only(look(film(stuck, until=90)))
    consumer_found = finding.facts["stuck_consumer"]

    assert ("ctag1", "billing", "10.0.0.7", "50001", CHANNEL, PEER) == tuple(
        consumer_found[key] for key in ("tag", "client", "host", "port", "channel", "connection")
    )
    assert (10, 150, 29.0) == tuple(finding.facts[key] for key in ("unacked", "ready", "held_seconds"))
    assert (10, "2027-01-15T08:01:01Z") == (
        evidence(finding, "consumer").value,
        evidence(finding, "consumer").facts["idle_since"],
    )
    assert (
        Involved(queues=(QueueRef("/", "orders"),), channels=(CHANNEL,), connections=(PEER,), clients=("billing",))
        == finding.involved
    )


def test_the_report_has_both_ways_to_close_the_connection():
    """Over HTTP by its name, and on a node by its Erlang pid."""
    commands = [step.command for step in text(only(look(film(stuck, until=90)))).steps]

    assert (
        "curl -u USER -X DELETE -H 'X-Reason: stuck consumer' "
        "http://MANAGEMENT_HOST:15672/api/connections/10.0.0.7%3A50001%20-%3E%2010.0.0.1%3A5672"
    ) in commands
    assert (
        f"rabbitmqctl list_connections pid name | grep -F -- '{PEER}'   "
        "# then: rabbitmqctl close_connection '<PID>' 'stuck consumer'"
    ) in commands
    assert "ss -tnp 'sport = :50001'" in commands


def test_since_is_the_moment_at_which_the_channel_became_idle():
    """The time does not move with the window."""
    moments = {only(look(film(stuck, until=until))).since for until in (90, 120, 300, 900)}

    assert {"2027-01-15T08:01:01Z"} == moments


def test_without_idle_since_only_the_watched_time_counts():
    """A channel that also does other work is not idle."""
    assert [] == urgent(look(film(lambda t: stuck(t, idle=False), until=80)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(lambda t: stuck(t, idle=False), until=90)))


def test_a_single_look_says_how_long_it_watched():
    """Two readings 8 s apart are enough for a finding."""
    window = film(stuck, start=62, until=70, every=8)

    finding = only(look(window, thresholds=Thresholds.as_if_lasting()))

    assert 8.0 == finding.seen_seconds


@pytest.mark.parametrize(("connected", "severity"), [(600, "critical"), (10, "info")])
def test_the_backlog_behind_consumers_that_never_acknowledged_tells_for_how_long(connected, severity):
    """Two readings. Messages stay ready only while no consumer may take more; those from before it connected do not."""

    def frame(t):
        counters = stats(publish=int(710 + 7 * t), deliver=10, deliver_get=10)
        began = WALL - connected
        return {
            "queues": (queue("scans", messages_ready=int(700 + 7 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer("scans"),),
            "channels": (channel(messages_unacked=10, stats=stats(deliver=10), idle_since=None),),
            "connections": (connection(connected_at=began),),
        }

    verdict = look(film(frame, until=8, every=8), thresholds=Thresholds.brief())

    assert [("stuck-consumer", severity, "scans")] == found(verdict)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("capacity", [None, 0.0, 1.0])
def test_the_queue_type_and_its_consumer_capacity_do_not_matter(kind, capacity):
    """`consumer_capacity` is constant for quorum queues."""
    window = film(lambda t: stuck(t, of={"type": kind, "consumer_capacity": capacity}), until=90)

    assert [("stuck-consumer", "critical", "orders")] == found(look(window))


def test_a_consumer_that_never_acknowledged_is_stuck_too():
    """The ack counter does not exist before the first acknowledgement. How long a message takes is not known then."""

    def frame(t):
        counters = stats(publish=int(20 + 5 * t), deliver=10, deliver_get=10)
        return {
            "queues": (queue(messages_ready=int(10 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, stats=stats(deliver=10)),),
        }

    assert [("stuck-consumer", "info", "orders")] == found(look(film(frame, until=30)))
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=45)))


def test_one_stuck_consumer_among_working_ones_is_a_warning():
    """The queue is consumed, and ten of its messages are stuck."""

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
    assert (False, 2, 1, 10) == tuple(
        finding.facts[key] for key in ("whole_queue", "consumers", "stuck_consumers", "unacked")
    )
    assert ["ctag1"] == [each.facts["held_by"]["tag"] for each in finding.evidence if each.key == "consumer"]
    assert "is partly stuck: 1 of its 2 consumers has 10 unacknowledged messages" in text(finding).summary


@pytest.mark.parametrize("until", [40, 200])
def test_the_pace_of_a_queue_is_that_of_the_consumers_that_are_not_stuck(until):
    """The queue grows because one of two is stuck: one finding, and the other one is not blamed for its pace."""

    def frame(t):
        theirs, mine = stats(deliver=int(110 + 5 * t), ack=int(100 + 5 * t)), stats(deliver=45, ack=5)
        both = stats(publish=int(150 + 9 * t), deliver=int(155 + 5 * t), ack=int(105 + 5 * t))
        return {
            "queues": (queue(consumers=2, messages_ready=int(4 * t), messages_unacked=50, stats=both),),
            "consumers": (consumer(prefetch_count=40), consumer(tag="ctag2", channel_name="10.0.0.8:1 -> b (1)")),
            "channels": (
                channel(messages_unacked=40, idle_since=WALL, stats=mine),
                channel("10.0.0.8:1 -> b (1)", messages_unacked=10, stats=theirs),
            ),
            "connections": (connection(),),
        }

    finding = only(look(film(frame, until=until)))

    (slow,) = [each for each in finding.consequences if each.rule == "slow-consumer"]
    assert "stuck-consumer" == finding.rule
    assert (1, 10, 0.2, 2) == tuple(
        slow.facts[key] for key in ("consumers", "prefetch_total", "seconds_per_message", "consumers_needed")
    )


def test_without_a_prefetch_limit_it_takes_a_minute():
    """Deliveries go on, all of them stay unacknowledged."""

    def frame(t):
        counters = stats(publish=int(10 + 5 * t), deliver=int(10 + 5 * t))
        return {
            "queues": (queue(messages_unacked=int(10 + 5 * t), stats=counters),),
            "consumers": (consumer(prefetch_count=0),),
            "channels": (channel(messages_unacked=int(10 + 5 * t), stats=counters),),
        }

    assert [] == urgent(look(film(frame, until=50)))
    assert [("stuck-consumer", "critical", "orders")] == urgent(look(film(frame, until=75)))


def test_a_prefetch_that_the_channel_shares_counts():
    """Before 4.0 consumers could share the prefetch of their channel; their own prefetch is 0 then."""

    def frame(t):
        picture = stuck(t, on={"prefetch_count": 0})
        return {**picture, "channels": (channel(messages_unacked=10, global_prefetch_count=10, idle_since=WALL),)}

    assert [("stuck-consumer", "critical", "orders")] == found(look(film(frame, until=90)))


def test_a_shared_prefetch_that_one_queue_uses_up_starves_the_others():
    """The finding names them, and does not say that there is no limit."""

    def frame(t):
        picture = stuck(t, on={"prefetch_count": 0})
        waiting = queue("thumbs", messages_ready=int(6 * t) + 1, stats=stats(publish=int(6 * t) + 1))
        return {
            **picture,
            "queues": (*picture["queues"], waiting),
            "consumers": (*picture["consumers"], consumer("thumbs", tag="ctag2", prefetch_count=0)),
            "channels": (channel(messages_unacked=10, global_prefetch_count=10, idle_since=WALL),),
        }

    (finding,) = [each for each in look(film(frame, until=90)).findings if each.subject.name == "orders"]

    assert (10, ["thumbs"], False) == tuple(
        finding.facts[key] for key in ("shared_prefetch", "starved_queues", "unlimited")
    )
    assert "so queue 'thumbs' waits for 'orders'" in text(finding).cause
    assert "; queue 'thumbs' gets nothing either, with 541 messages ready" in text(finding).summary
    assert {"orders", "thumbs"} == {each.name for each in finding.involved.queues}


def test_starved_queues_make_a_standstill_critical():
    """Also if the queue whose messages use up the shared prefetch has none ready: what waits is in the other one."""

    def frame(t):
        held = queue("exports", messages_unacked=5, consumers=1, stats=stats(publish=5, deliver=5, ack=0))
        waiting = queue("alerts", messages_ready=int(7 * t) + 1, consumers=1, stats=stats(publish=int(7 * t) + 1))
        return {
            **stuck(t),
            "queues": (held, waiting),
            "consumers": tuple(consumer(name, tag=name, prefetch_count=0) for name in ("exports", "alerts")),
            "channels": (channel(messages_unacked=5, global_prefetch_count=5, idle_since=WALL),),
        }

    (finding,) = [each for each in look(film(frame, until=400)).findings if each.rule == "stuck-consumer"]

    assert ("critical", "exports") == (finding.severity, finding.subject.name)
    assert ["alerts"] == finding.facts["starved_queues"]


def test_a_frozen_process_differs_from_a_handler_that_hangs():
    """It does not read its socket either."""
    window = film(lambda t: stuck(t, through={"send_pend": 140_000}), until=90)

    finding = only(look(window))

    assert finding.facts["socket_unread"]
    assert 140_000 == evidence(finding, "unsent").value
    assert "the whole process is frozen" in text(finding).cause


def test_a_consumer_that_holds_nothing_is_not_stuck():
    """One with a higher priority takes everything and hangs; the other one would work and gets nothing."""
    other = "10.0.0.8:50002 -> 10.0.0.1:5672"

    def frame(t):
        took, done = int(12 * t), int(12 * min(t, 60))
        counters = stats(publish=took, deliver=took, deliver_get=took, ack=done)
        return {
            "queues": (queue(messages_unacked=took - done, consumers=2, stats=counters),),
            "consumers": (
                consumer(prefetch_count=2000),
                consumer(channel_name=f"{other} (1)", connection_name=other, prefetch_count=50),
            ),
            "channels": (
                channel(messages_unacked=took - done, stats=stats(deliver=took, ack=done)),
                channel(f"{other} (1)", connection_name=other, messages_unacked=0, stats=stats(deliver=0)),
            ),
            "connections": (connection(), connection(other, client_name="second-site")),
        }

    finding = next(each for each in look(film(frame, until=150)).findings if each.rule == "stuck-consumer")

    assert ("billing",) == finding.involved.clients
    assert "1 of its 2 consumers has" in text(finding).summary
    assert 1 == sum(each.key == "consumer" for each in finding.evidence)


def test_a_stream_redelivers_nothing_and_has_no_dead_letters():
    """Its reader reads on from the offset that it asks for."""
    finding = only(look(film(lambda t: stuck(t, of={"type": "stream"}), until=120)))
    steps = str(text(finding).steps)

    assert ("stuck-consumer", "stream") == (finding.rule, finding.facts["queue"]["type"])
    assert "redelivered" not in steps
    assert "dead-letter" not in steps
