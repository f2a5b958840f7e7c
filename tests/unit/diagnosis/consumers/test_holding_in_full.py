"""Forms of a standstill at exactly the prefetch: batches, streams, a channel that serves several queues."""

import pytest

from ackscope.findings import Severity, flat
from diagnosis.brief import diagnose_briefly
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    WALL,
    channel,
    connection,
    consumer,
    film,
    look,
    queue,
    stats,
    stuck,
    text,
)


def full(names=("ship",), *, prefetch=40, consumers=1, kind="classic", acked=0, rate=5.0, shared=0, idle=None):
    """One channel that holds exactly its prefetch of each queue from the beginning, while messages are published."""

    def frame(t):
        held = shared or prefetch * consumers
        counters = stats(publish=int(rate * t) + held + acked, deliver=held + acked, ack=acked or None)
        return {
            "queues": tuple(
                queue(
                    name,
                    type=kind,
                    consumers=consumers,
                    messages_ready=int(rate * t) + 1,
                    messages_unacked=0 if kind == "stream" else held,
                    stats=counters,
                )
                for name in names
            ),
            "consumers": tuple(
                consumer(
                    name, tag=f"{name}.{number}", prefetch_count=0 if shared else prefetch, active=kind != "stream"
                )
                for name in names
                for number in range(consumers)
            ),
            "channels": (
                channel(
                    messages_unacked=held * len(names),
                    consumer_count=consumers * len(names),
                    prefetch_count=prefetch,
                    global_prefetch_count=shared or None,
                    idle_since=None if idle is None else WALL + idle(t),
                    stats=stats(deliver=(held + acked) * len(names), ack=acked * len(names) or None),
                ),
            ),
            "connections": (connection(client_name="shipper"),),
        }

    return frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"kind": "quorum", "prefetch": 7},
        {"consumers": 2},
        {"shared": 30},
        {"rate": 0.5},
    ],
    ids=["classic", "quorum", "two consumers on a channel", "shared prefetch", "slow"],
)
def test_a_batch_larger_than_its_prefetch_is_named(change):
    """All stop at exactly their prefetch, and none was ever acknowledged."""
    finding = only_stuck(look(film(full(**change), until=60)))

    assert ("critical", "ship") == (finding.severity, finding.subject.name)
    assert finding.facts["never_acked"]
    assert "batch that is larger than its prefetch" in text(finding).cause


def test_a_first_job_that_takes_half_a_minute_is_no_warning():
    """No acknowledgement was seen before, so it is not known how long one takes."""
    assert [] == urgent(look(film(full(), until=35)))


def test_a_quorum_queue_gives_a_consumer_without_limit_two_thousand_messages():
    """Then it holds all it may."""
    finding = look(film(full(kind="quorum", prefetch=0, shared=2000), until=60)).findings[0]

    assert "critical" == finding.severity
    assert "stuck-consumer" in {each.rule for each in flat([finding])}


def only_stuck(result):
    """Return the only finding of the rule."""
    (finding,) = [each for each in result.findings if each.rule == "stuck-consumer"]
    return finding


def test_consumers_that_acknowledged_before_have_no_batch_that_is_too_large():
    """So the handler hangs."""
    assert "larger than its prefetch" not in text(only(look(film(full(acked=500), until=60)))).cause


def test_two_readings_show_it():
    """What is seen for 6 s is said so."""
    result = look(film(full(), until=6, every=6), thresholds=Thresholds.as_if_lasting())

    assert [("stuck-consumer", "critical", "ship")] == found(result)


def test_two_readings_of_a_slow_consumer_show_no_standstill():
    """It acknowledged before, and how long a message takes is not known: it would be a standstill if it lasted."""
    window = film(full(acked=500), until=6, every=6)
    result = diagnose_briefly(window, (), window.latest.taken)

    assert [("stuck-consumer", "info", "ship")] == found(result)
    assert Severity.CRITICAL is only_stuck(result).if_it_lasts


def test_one_channel_that_serves_five_queues_is_one_finding():
    """The others hang under it, and it names them."""
    names = ("audit", "mail", "orders", "sms", "stock")
    finding = only(look(film(full(names, prefetch=10), until=60)))

    assert ["stuck-consumer"] * 4 == [each.rule for each in finding.consequences]
    assert set(names) - {finding.subject.name} == set(finding.facts["other_queues"])


def test_two_clients_that_are_stuck_are_two_findings():
    """They share nothing."""

    def frame(t):
        one, other = full(("a",))(t), full(("b",))(t)
        name = "10.0.0.8:50002 -> 10.0.0.1:5672"
        return {
            "queues": (*one["queues"], *other["queues"]),
            "consumers": (
                *one["consumers"],
                consumer("b", channel_name=f"{name} (1)", connection_name=name, prefetch_count=40),
            ),
            "channels": (*one["channels"], channel(f"{name} (1)", messages_unacked=40, prefetch_count=40)),
            "connections": (connection(client_name="one"), connection(name, client_name="two")),
        }

    assert [("stuck-consumer", "critical", "a"), ("stuck-consumer", "critical", "b")] == sorted(
        found(look(film(frame, until=60)))
    )


def test_a_reader_of_a_stream_that_stops_is_stuck():
    """The queue counts nothing as unacknowledged; its channel does. 3.10 calls every reader inactive."""
    finding = only(look(film(full(("log",), kind="stream", prefetch=15, acked=30), until=60)))

    assert ("stuck-consumer", "critical", "log") == (finding.rule, finding.severity, finding.subject.name)
    assert 15 == finding.facts["unacked"]
    assert "redelivered" not in " ".join(step.text for step in text(finding).steps if "thread dump" in step.text)


@pytest.mark.parametrize("kind", ["stream", "classic"])
def test_advice_for_a_stream_speaks_of_its_offset(kind):
    """A stream redelivers nothing and has no dead letters."""
    finding = only(look(film(full(("log",), kind=kind, prefetch=15, acked=30), until=60)))
    advice = " ".join(step.text for step in text(finding).steps)

    assert (kind == "classic") == ("redelivered" in advice)
    assert (kind == "classic") == ("dead-letter exchange" in advice)


def test_a_reader_at_the_end_of_a_stream_is_not_stuck():
    """Nothing is published, so it has nothing to acknowledge."""
    assert "stuck-consumer" not in ever([look(film(full(("log",), kind="stream", rate=0.0), until=60))])


def test_a_duration_is_not_shortened_when_the_broker_renews_idle_since():
    """It does so once a minute."""
    finding = only(look(film(full(idle=lambda t: 60 * (t // 60)), until=130)))

    assert 125 <= finding.facts["held_seconds"]
    assert CHANNEL in finding.involved.channels


def test_scheduled_tasks_that_use_up_a_prefetch_are_recognised():
    """Others were acknowledged while what it holds rose step by step."""

    def frame(t):
        held = min(16, int(t / 3))
        done = int(4 * min(t, 48))
        counters = stats(publish=int(8 * t), deliver=done + held, ack=done)
        return {
            "queues": (
                queue(
                    "tasks",
                    type="quorum",
                    messages_ready=max(0, int(8 * t) - done - held),
                    messages_unacked=held,
                    stats=counters,
                ),
            ),
            "consumers": (consumer("tasks", prefetch_count=16),),
            "channels": (channel(messages_unacked=held, prefetch_count=16, stats=counters),),
            "connections": (connection(),),
        }

    finding = only_stuck(look(film(frame, until=90)))

    assert ("critical", True) == (finding.severity, finding.facts["gathered"])
    assert "scheduled tasks" in text(finding).cause


@pytest.mark.parametrize(("rate", "prefetch"), [(22.0, 150), (60.0, 300), (9.0, 90), (4.0, 6)])
@pytest.mark.parametrize("stops", [30.0, 33.7])
def test_a_prefetch_that_fills_after_the_last_acknowledgement_did_not_fill_step_by_step(rate, prefetch, stops):
    """One delivery holds back the acknowledgement of those behind it; before that, what it held went up and down."""

    def frame(t):
        delivered = min(int(rate * t), int(rate * stops) // 10 * 10 + prefetch)
        done = int(rate * min(t, stops)) // 10 * 10
        counters = stats(publish=int(rate * t), deliver=delivered, ack=done)
        return {
            "queues": (
                queue(
                    "tiles",
                    messages_ready=int(rate * t) - delivered,
                    messages_unacked=delivered - done,
                    stats=counters,
                ),
            ),
            "consumers": (consumer("tiles", prefetch_count=prefetch),),
            "channels": (channel(messages_unacked=delivered - done, prefetch_count=prefetch, stats=counters),),
            "connections": (connection(),),
        }

    finding = only_stuck(look(film(frame, until=100)))

    assert ("critical", False) == (finding.severity, finding.facts["gathered"])


def batches(t, *, size=100, rate=5.0, stops=None):
    """A client without a limit that acknowledges a batch at once; it may hang."""
    delivered = int(rate * t)
    counted = delivered if stops is None else min(delivered, int(rate * stops))
    acked = counted - counted % size
    held = delivered - acked
    counters = stats(publish=delivered, deliver=delivered, ack=acked or None)
    return {
        "queues": (queue(messages_unacked=held, stats=counters),),
        "consumers": (consumer(prefetch_count=0),),
        "channels": (channel(messages_unacked=held, prefetch_count=0, stats=counters),),
        "connections": (connection(),),
    }


def test_a_client_that_works_in_batches_is_given_its_time():
    """Three times the longest interval between its acknowledgements, and as many messages as it held before."""
    healthy = [look(film(lambda t: batches(t, size=250), until=until)) for until in range(55, 400, 45)]
    hung = look(film(lambda t: batches(t, stops=150), until=300))

    assert [] == [each for result in healthy[1:] for each in urgent(result)]
    assert [("stuck-consumer", "critical", "orders")] == urgent(hung)


def test_one_delivery_that_holds_back_multiple_acknowledgements_is_found_below_the_prefetch():
    """Deliveries go on, and it holds more than it ever did."""

    def frame(t):
        picture = batches(t, size=5, stops=60)
        return {**picture, "consumers": (consumer(prefetch_count=5000),)}

    assert [("stuck-consumer", "critical", "orders")] == urgent(look(film(frame, until=150)))


def test_a_stuck_consumer_is_found_as_before():
    """The same law, with the picture of the other tests."""
    assert [("stuck-consumer", "critical", "orders")] == found(look(film(stuck, until=90)))
