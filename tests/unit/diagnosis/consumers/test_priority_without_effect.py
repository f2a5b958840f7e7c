import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

RULE = "priority-without-effect"


def ahead(*, held=320, rate=8.0, arguments=None, of=("post",), came=0.0):
    """A consumer of a queue with priorities that holds these messages, and acknowledges as many as are published."""

    def frame(t):
        here = held if t >= came else 0
        done = int(rate * t)
        counters = stats(publish=done + here, deliver=done + here, ack=done)
        return {
            "queues": tuple(
                queue(
                    name,
                    messages=here,
                    messages_ready=0,
                    messages_unacked=here,
                    arguments={"x-max-priority": 9} if arguments is None else arguments,
                    stats=counters,
                )
                for name in of
            ),
            "consumers": tuple(consumer(name, tag=name, prefetch_count=max(400, held)) for name in of),
            "channels": (channel(messages_unacked=here, prefetch_count=max(400, held), stats=counters),),
            "connections": (connection(),),
        }

    return frame


@pytest.mark.parametrize(("held", "rate"), [(320, 8.0), (30, 1.0), (900, 30.0)])
def test_it_is_information_with_the_time_that_an_urgent_message_waits(held, rate):
    """All that the consumer holds is worked off first; a prefetch of a second of its work is the advice."""
    finding = only(look(film(ahead(held=held, rate=rate), until=40)))

    assert (RULE, "info", "post") == (finding.rule, finding.severity, finding.subject.name)
    assert pytest.approx(held / rate, rel=0.1) == finding.facts["work_seconds"]
    assert any(f"second: {round(rate)} at its rate" in step.text for step in text(finding).steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {}},
        {"held": 100},
        {"held": 9, "rate": 0.2},
        {"of": ("post", "mail")},
        {"came": 30.0},
        {"rate": 0.0},
    ],
    ids=["no priorities", "12 s of work", "few messages", "channel of two queues", "just sent", "nothing acknowledged"],
)
def test_other_queues_are_not_reported(fields):
    """Without priorities the order does not change, and a short wait is no loss of time."""
    assert RULE not in [rule for rule, _, _ in found(look(film(ahead(**fields), until=40)))]
