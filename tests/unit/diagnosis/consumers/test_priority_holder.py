import pytest

from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "stuck-consumer"


def preferred(*, priority=10, hangs=30.0, prefetch=1000, rate=5.0, others=3, other=None, acks=False):
    """A consumer of higher priority that gets all messages, and acknowledges none from second `hangs` on."""

    def frame(t):
        sent = int(100 + rate * t)
        acked = sent if acks else int(100 + rate * min(t, hangs))
        held = sent - acked
        names = [f"10.0.0.7:{5000 + number} -> 10.0.0.1:5672" for number in range(1 + others)]
        links = [
            consumer(
                "work",
                tag=f"c{number}",
                connection_name=name,
                channel_name=f"{name} (1)",
                prefetch_count=prefetch if not number else 10,
                priority=other if number else priority,
            )
            for number, name in enumerate(names)
        ]
        mine = stats(deliver=sent, deliver_get=sent, ack=acked)
        return {
            "queues": (
                queue(
                    "work",
                    type="quorum",
                    messages_unacked=held,
                    consumers=1 + others,
                    stats=stats(publish=sent, deliver=sent, deliver_get=sent, ack=acked),
                ),
            ),
            "consumers": tuple(links),
            "channels": tuple(
                channel(f"{name} (1)", messages_unacked=0 if number else held, stats=stats() if number else mine)
                for number, name in enumerate(names)
            ),
            "connections": tuple(
                connection(name, client_name=f"worker-{number}" if number else "canary", connected_at=WALL - 900)
                for number, name in enumerate(names)
            ),
        }

    return frame


@pytest.mark.parametrize(
    "options",
    [{}, {"priority": 1, "rate": 30.0, "prefetch": 5000}, {"others": 1}, {"priority": 0, "other": -5}],
    ids=["a canary", "quick", "two consumers", "the others have less than none"],
)
def test_the_priority_of_a_stuck_holder_is_its_root(options):
    """Nothing is ready, because the broker sends it everything."""
    finding = one(RULE, look(film(preferred(**options), until=120)))
    steps = full_text(finding)

    assert ("critical", "work") == (finding.severity.value, finding.subject.name)
    assert f"x-priority {options.get('priority', 10)}" in steps
    assert "0 messages are ready" not in steps
    assert steps.index("Close its connection") < steps.index("thread dump")


def test_one_look_shows_it_as_information():
    """It is delivered messages and acknowledges none, and idle consumers are beside it."""
    assert [("info", "work")] == of(RULE, look(film(preferred(), until=75, start=60)))


@pytest.mark.parametrize(
    "options", [{"priority": None}, {"other": 10}, {"acks": True}], ids=["no priority", "the same", "it works"]
)
def test_without_a_higher_priority_one_look_does_not_say_so(options):
    """The broker then sends the next message to another consumer."""
    assert [] == of(RULE, look(film(preferred(**options), until=75, start=60)))
