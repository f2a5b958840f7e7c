from dataclasses import replace

import pytest

from ackscope.records import ProbeStep, Quantiles
from ackscope.snapshot import Overview
from tests.unit.diagnosis.consumers.films import trip
from tests.unit.diagnosis.consumers.results import found, only, urgent
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

SHOP = "10.0.0.9:51000 -> 10.0.0.1:5672"


def circling(*, again=20.0, comes=0.0, held=12, elsewhere=0.0, opened=0.0, own="jobs", dead=0.0):
    """A consumer that publishes `again` messages a second to its queue, and others that publish `comes` to it.

    `elsewhere`: messages a second that others publish to another queue; `dead`: dead letters a second that arrive.
    """

    def frame(t):
        published, acked = int((again + comes) * t), int((again + comes + dead) * t)
        counters = stats(publish=published + held, deliver=acked + held, ack=acked)
        mine = stats(publish=int(again * t), deliver=acked, ack=acked)
        theirs = stats(publish=int((comes + elsewhere) * t))
        churn = {"channel_created": int(opened * t), "channel_closed": int(opened * t)}
        total = stats(publish=round(1000 + 10 * t))
        return {
            "overview": Overview(
                rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", stats=total, churn=churn
            ),
            "queues": (queue(own, messages_ready=held - 2, messages_unacked=2, stats=counters),),
            "consumers": (consumer(own),),
            "channels": (
                channel(messages_unacked=2, stats=mine),
                channel(f"{SHOP} (1)", consumer_count=0, stats=theirs),
            ),
            "connections": (connection(client_name="sender"), connection(SHOP, client_name="shop")),
        }

    return frame


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"again": 300.0, "held": 40},
        {"comes": 0.5},
        {"again": 60.0, "comes": 5.0},
        {"elsewhere": 3.0, "again": 90.0},
    ],
    ids=["alone", "quick", "some come", "many come", "others publish elsewhere"],
)
def test_a_consumer_that_publishes_its_messages_again_is_found(fields):
    """Nothing is redelivered, and all is acknowledged: the publishes of all others do not account for what arrives."""
    finding = next(each for each in look(film(circling(**fields), until=70)).findings if each.rule == "republish-loop")

    assert ("warning", "jobs") == (finding.severity, finding.subject.name)
    assert ["sender"] == finding.facts["clients"]
    assert finding.facts["again"] <= fields.get("again", 20.0) * finding.facts["over_seconds"]
    assert "circulate" in text(finding).summary


def test_it_is_information_at_first():
    """A job may publish its next step for some time."""
    assert [("republish-loop", "info", "jobs")] == found(look(film(circling(), until=25)))
    assert [] == urgent(look(film(circling(), until=40)))


@pytest.mark.parametrize(
    "fields",
    [
        {"again": 20.0, "comes": 20.0},
        {"again": 0.0, "comes": 40.0},
        {"again": 1.0, "held": 2},
        {"held": 2000},
        {"opened": 4.0},
        {"elsewhere": 40.0},
        {"again": 0.0, "dead": 30.0},
    ],
    ids=[
        "one more step each", "publishes of others", "a timer", "a long queue", "channels too short to be seen",
        "others may publish to it", "dead letters",
    ],
)  # fmt: skip
def test_what_has_another_explanation_is_left_alone(fields):
    """A rule that cannot prove it says nothing."""
    assert "republish-loop" not in {rule for rule, _, _ in found(look(film(circling(**fields), until=70)))}


def test_the_channels_of_our_own_probes_are_not_those_of_others():
    """The redelivery probe closes one every five seconds, and opens another."""
    closes = ProbeStep(attempts=12, seconds=Quantiles(count=12, p50=0.01, p90=0.01, p99=0.01, max=0.01))
    probe = replace(trip(0.001), probe="redelivery", stream="classic", at=WALL + 70, steps={"channel-close": closes})
    window = film(circling(opened=0.25), until=70)

    assert "republish-loop" not in {rule for rule, _, _ in found(look(window))}
    assert "republish-loop" in {rule for rule, _, _ in found(look(window, outcomes=(probe,)))}


def test_a_stage_that_forwards_to_another_queue_is_left_alone():
    """It publishes as many messages as it acknowledges, and so do the publishers of its queue."""

    def frame(t):
        picture = circling(again=0.0, comes=30.0)(t)
        first, second = picture["channels"]
        forwards = replace(first, stats=replace(first.stats, publish=int(30 * t)))
        return {**picture, "channels": (forwards, second)}

    assert [] == found(look(film(frame, until=70)))


def test_the_finding_never_claims_more_than_its_own_clients_published():
    """The publishes of a client that shares the vhost are not theirs."""
    finding = only(look(film(circling(again=50.0), until=70)))

    assert finding.facts["again"] <= finding.facts["published"] - finding.facts["by_others"]
