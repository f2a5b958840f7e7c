import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.own import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, told


def loop(t, *, published=0.0, acked=0.0, share=1.0, rate=90.0, start=0.0, end=1e9, **fields):
    """A consumer that gives three messages back, so many times a second, and acknowledges hardly any."""
    seconds = max(0.0, min(t, end) - start)
    again, done = int(rate * seconds), int(acked * t)
    delivered = int(again / share) + done
    counters = {"redeliver": again, "deliver": delivered, "deliver_get": delivered, "ack": done}
    total = stats(publish=3 + int(published * t), **counters)
    return {
        "queues": (queue(messages_ready=2, messages_unacked=1, stats=total, **fields),),
        "consumers": (consumer(prefetch_count=1),),
        "channels": (channel(messages_unacked=1, stats=stats(**counters)),),
        "connections": (connection(),),
    }


def test_a_loop_is_found_after_twenty_seconds():
    """It must go on in two intervals in a row; the application is named. It is mentioned sooner."""
    finding = only(look(film(loop, until=40)))

    assert ("requeue-loop", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "given back by 'billing'" in finding.summary
    assert "rabbitmqctl list_consumers -p / | grep -F -- orders" in told(finding)
    assert [("requeue-loop", "info", "orders")] == found(look(film(loop, until=15)))
    assert [] == found(look(film(loop, until=10)))


def test_while_more_is_published_the_queue_is_stopped():
    """Nothing gets past the loop: that is critical."""
    window = film(lambda t: loop(t, published=5.0), until=40)

    assert [("requeue-loop", "critical", "orders")] == found(look(window))


def test_one_look_is_enough_while_it_lasts():
    """Two readings eight seconds apart."""
    window = film(loop, start=20, until=28, every=8)

    assert [("requeue-loop", "warning", "orders")] == found(look(window, thresholds=Thresholds.one_shot()))


def test_a_burst_after_a_restart_is_no_loop():
    """A consumer that comes back gets once again what it held; then it works on."""
    verdicts = [
        found(look(film(lambda t: loop(t, start=20, end=24, acked=20.0), until=until))) for until in range(20, 70, 5)
    ]

    assert [] == [verdict for verdict in verdicts if verdict]


def test_a_burst_without_acknowledgements_is_no_loop_either():
    """Hundreds at once, and all of them held: that fills one interval and not two."""
    burst = {"start": 22, "end": 23, "rate": 300.0}
    verdicts = [found(look(film(lambda t: loop(t, **burst), until=until))) for until in range(20, 90, 5)]

    assert "requeue-loop" not in [rule for verdict in verdicts for rule, _, _ in verdict]


@pytest.mark.parametrize(
    "change",
    [{"acked": 50.0}, {"share": 0.3}, {"rate": 0.5}],
    ids=["acknowledges", "mostly first deliveries", "now and then"],
)
def test_what_only_resembles_a_loop_is_left_alone(change):
    """Work gets done, or redeliveries are few."""
    assert [] == found(look(film(lambda t: loop(t, **change), until=60)))


def test_a_loop_that_ended_is_not_repeated():
    """The counters stay high and stand still."""
    window = film(lambda t: loop(t, end=40), until=60)

    assert [] == found(look(window))


def test_without_its_sum_deliveries_are_added_up():
    """`deliver_get` may be missing; its parts are then taken."""

    def frame(t):
        counters = stats(redeliver=int(90 * t), deliver=int(60 * t), get=int(31 * t))
        return {"queues": (queue(messages_ready=1, stats=counters),)}

    assert [("requeue-loop", "warning", "orders")] == found(look(film(frame, until=40)))


@pytest.mark.parametrize(
    ("kind", "version", "words"),
    [
        ("classic", "4.3.6", "knows no limit"),
        ("quorum", "3.10.8", "no delivery limit unless one is set"),
        ("quorum", "4.0.5", "these messages are being lost"),
        ("quorum", "4.3.6", "basic.nack does not count"),
    ],
)
def test_the_cause_says_what_this_version_does_with_such_messages(kind, version, words):
    """Delivery limits changed with 4.0 and again with 4.3."""
    window = film(lambda t: {**loop(t, type=kind), "version": version}, until=40)

    assert words in only(look(window)).cause
