"""Stuck consumers that may wait for a reply to a request of their own."""

import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

HELD = "Send nested calls"


def workers(number=2, *, replies=True, publishes=True, beside=False):
    """Consumers of a queue that stopped in second 20; each has a reply queue and has published requests.

    With `beside`, another worker neither publishes nor has a reply queue.
    """

    def frame(t):
        handled = int(4 * min(t, 20))
        queues = [
            queue(
                "quotes",
                consumers=number + beside,
                messages=int(4 * max(0.0, t - 20)) + 2,
                messages_ready=int(4 * max(0.0, t - 20)),
                messages_unacked=number + beside,
                stats=stats(publish=int(4 * t) + 2, deliver=handled + number, ack=handled),
            )
        ]
        made = {"consumers": [], "channels": [], "connections": []}
        for place in range(number + beside):
            peer, asks = f"10.0.3.{place}:5{place} -> 10.0.0.1:5672", place < number
            counters = stats(deliver=handled, ack=handled)
            made["connections"].append(connection(peer, client_name=f"quoter-{place}"))
            made["channels"].append(channel(f"{peer} (1)", messages_unacked=1, prefetch_count=1, stats=counters))
            made["consumers"].append(
                consumer("quotes", tag=f"w{place}", channel_name=f"{peer} (1)", connection_name=peer, prefetch_count=1)
            )
            if asks and publishes:
                made["channels"].append(channel(f"{peer} (2)", stats=stats(publish=3)))
            if asks and replies:
                queues.append(queue(f"amq.gen-{place}", exclusive=True, durable=False))
                made["consumers"].append(
                    consumer(f"amq.gen-{place}", tag=f"r{place}", channel_name=f"{peer} (2)", connection_name=peer)
                )
        return {"queues": tuple(queues), **{key: tuple(value) for key, value in made.items()}}

    return frame


@pytest.mark.parametrize("number", [1, 3])
def test_a_nested_call_is_among_the_causes(number):
    """All consumers of the queue hold a message, have published, and consume from reply queues."""
    finding = only(look(film(workers(number), until=120)))

    assert [f"quoter-{place}" for place in range(number)] == finding.facts["awaiting_replies"]
    assert "a nested call" in text(finding).cause
    assert any(HELD in step.text for step in text(finding).steps)


@pytest.mark.parametrize("fields", [{"replies": False}, {"publishes": False}, {"beside": True}])
def test_others_wait_for_something_else(fields):
    """Without a request or a reply queue they wait for no reply; one that asks nobody is free to answer."""
    verdict = look(film(workers(**fields), until=120))

    assert ["stuck-consumer"] == [rule for rule, _, _ in found(verdict)]
    assert [] == only(verdict).facts["awaiting_replies"]
    assert not any(HELD in step.text for step in text(only(verdict)).steps)
