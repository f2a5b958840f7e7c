"""Slow consumers without a prefetch limit: the backlog is with them until their socket is full, then in the queue."""

import pytest

from diagnosis.hold_time import advised_prefetch
from tests.unit.diagnosis.consumers.results import ever, urgent
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def flooded(*, comes=3.0, goes=1.0, most=190, size=400_000, named="pages", consumers=1, until=10_000, burst=0):
    """Consumers that are sent all until they hold `most` together; nothing is published after second `until`."""
    names = [f"10.0.4.{number + 2}:4100 -> 10.0.0.1:5672" for number in range(consumers)]

    def frame(t):
        published = burst + int(comes * min(t, until))
        acked = min(published, int(goes * t))
        held = min(most, published - acked)
        waiting = published - acked - held
        counters = stats(publish=published, deliver=acked + held, ack=acked)
        share = stats(deliver=(acked + held) // consumers, ack=acked // consumers)
        return {
            "queues": (
                queue(
                    named,
                    consumers=consumers,
                    messages_ready=waiting,
                    messages_unacked=held,
                    message_bytes=size * (waiting + held),
                    stats=counters,
                ),
            ),
            "consumers": tuple(
                consumer(named, tag=name, channel_name=f"{name} (1)", connection_name=name, prefetch_count=0)
                for name in names
            ),
            "channels": tuple(
                channel(f"{name} (1)", messages_unacked=held // consumers, prefetch_count=0, stats=share)
                for name in names
            ),
            "connections": tuple(connection(name, client_name="reader") for name in names),
        }

    return frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"comes": 20.0, "goes": 4.0, "most": 900, "size": 2_000, "named": "thumbnails"},
        {"comes": 6.0, "goes": 2.0, "most": 400, "consumers": 2, "named": "invoices"},
    ],
    ids=["large messages", "small ones", "two consumers"],
)
def test_the_finding_does_not_end_when_the_socket_is_full(change):
    """Ready and unacknowledged messages grow together all the time; only their place changes."""
    frame = flooded(**change)
    results = {until: look(film(frame, until=until)) for until in range(75, 301, 15)}
    named = change.get("named", "pages")

    missing = [until for until, result in results.items() if named not in [each for _, _, each in urgent(result)]]

    assert [] == missing
    assert ("slow-consumer", "warning", named) in urgent(results[300])


def test_a_prefetch_is_the_first_advice_and_fits_the_pace():
    """The work of 10 s at one message a second is 10 messages."""
    finding = next(each for each in look(film(flooded(), until=300)).findings if each.rule == "slow-consumer")
    steps = str(text(finding).steps)

    assert 10 == finding.facts["prefetch_advised"]
    assert "First set a prefetch in 'reader'" in str(text(finding).steps[0])
    assert "about 10, the work of 10 s" in steps
    assert "Do not raise the prefetch" not in steps
    assert 3 == finding.facts["consumers_needed"]


def test_so_it_is_while_the_messages_are_with_the_client():
    """Then none is ready."""
    finding = next(each for each in look(film(flooded(), until=75)).findings if each.rule == "unacked-grows")

    assert "about 10, the work of 10 s" in str(text(finding).steps[0])


@pytest.mark.parametrize(
    "change",
    [
        {"goes": 3.0},
        {"until": 60},
        {"comes": 50.0, "goes": 40.0, "most": 100},
    ],
    ids=["keeps up", "nothing is published any more", "holds little work"],
)
def test_what_is_no_slow_consumer_without_a_limit(change):
    """The two together do not grow, or what limits it may be the network."""
    results = [look(film(flooded(**change), until=until)) for until in (150, 200, 300)]

    assert "slow-consumer" not in ever(results)


@pytest.mark.parametrize(
    ("rate", "size", "advised"),
    [(0.02, 100, 1), (1.0, 400_000, 10), (5.0, 400_000, 41), (1.0, 40 * 2**20, 1), (500.0, 100, 300)],
)
def test_an_advised_prefetch_fits_pace_and_size(rate, size, advised):
    """Ten seconds of work, at most 300 messages and 16 MiB."""
    assert advised == advised_prefetch(queue(messages_ready=100, message_bytes=100 * size), rate)
    assert min(300, max(1, round(10 * rate))) == advised_prefetch(queue(messages_ready=100), rate)
