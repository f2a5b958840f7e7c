"""Queues whose consumers acknowledge automatically and read more slowly than messages are published."""

import pytest

from ackscope.findings import flat
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def reading(*, comes=40.0, lump=50, every=12, ack=False, named="positions"):
    """A socket that takes `lump` messages each `every` seconds."""

    def frame(t):
        taken, published = 500 + lump * int((t + 1) // every), int(1500 + comes * t)
        counters = stats(
            publish=published, deliver_get=taken, **({"deliver": taken} if ack else {"deliver_no_ack": taken})
        )
        return {
            "queues": (queue(named, messages_ready=published - taken, stats=counters),),
            "consumers": (consumer(named, ack_required=ack, prefetch_count=0),),
            "channels": (channel(stats=counters),),
            "connections": (connection(),),
        }

    return frame


def of_rule(frame, **when):
    """The findings of queue-overload, with the thresholds of one look if there are only two readings."""
    brief = {"thresholds": Thresholds.brief()} if when.get("every") == 10 else {}
    return [each for each in flat(look(film(frame, **when), **brief).findings) if each.rule == "queue-overload"]


@pytest.mark.parametrize(
    "change", [{}, {"comes": 7.0, "every": 30, "named": "fixes"}, {"comes": 300.0, "lump": 900}], ids=str
)
def test_one_look_into_a_pause_of_the_socket_finds_it(change):
    """Nothing was delivered in those seconds, and none of the consumers has to acknowledge first."""
    start = change.get("every", 12)
    (finding,) = of_rule(reading(**change), start=start, until=start + 10, every=10)
    said = text(finding)

    assert ("info", "standstill", True) == (finding.severity, finding.facts["reason"], finding.facts["automatic"])
    assert "with automatic acknowledgement" in said.summary
    assert "prefetch allows" not in said.cause
    assert "send_pend" in said.steps[0].command


@pytest.mark.parametrize("until", [100, 233, 236, 239, 242, 245])
def test_lumps_that_a_socket_takes_are_no_standstill(until):
    """What it read over the whole time is its pace, also in a pause."""
    (finding,) = of_rule(reading(), until=until)

    assert "queue_limit" == finding.facts["reason"]
    assert finding.facts["consume_rate"] == pytest.approx(50 / 12, rel=0.2)
    assert "they read" in text(finding).cause
    assert "prefetch allows" not in text(finding).cause


@pytest.mark.parametrize("change", [{"ack": True}, {"comes": 0.0}], ids=["has to acknowledge", "nothing comes"])
def test_one_look_into_another_pause_finds_nothing(change):
    """No limit is known to be unused, or the queue does not grow."""
    assert [] == of_rule(reading(**change), start=12, until=23, every=10)


def test_a_socket_that_keeps_up_in_lumps_is_no_overload():
    """The queue grows for some seconds, and then it is as short as before."""
    assert [] == of_rule(reading(comes=4.0), until=240)
