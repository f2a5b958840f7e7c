"""Consumers that acknowledge their whole prefetch at once: a batch that waits for more than the prefetch allows."""

import pytest

from tests.unit.diagnosis.consumers.results import found
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def batching(*, prefetch=20, every=30, comes=6.0, consumers=1, acks=None, between=0, named="entries", kind="classic"):
    """Consumers that acknowledge `acks` (their whole prefetch) each `every` seconds, and `between` halfway."""
    names = [f"10.0.3.{number + 2}:4000 -> 10.0.0.1:5672" for number in range(consumers)]
    size = prefetch if acks is None else acks

    def acked_by(t, number):
        moved = t + number * every / consumers
        return size * int(moved // every) + between * int((moved + every / 2) // every)

    def frame(t):
        each = [acked_by(t, number) for number in range(consumers)]
        acked, held = sum(each), prefetch * consumers
        published = int(comes * t) + held + 200 + size * consumers
        counters = stats(publish=published, deliver=acked + held, ack=acked)
        waiting = published - acked - held
        return {
            "queues": (
                queue(
                    named, type=kind, consumers=consumers, messages_ready=waiting, messages_unacked=held, stats=counters
                ),
            ),
            "consumers": tuple(
                consumer(named, tag=name, channel_name=f"{name} (1)", connection_name=name, prefetch_count=prefetch)
                for name in names
            ),
            "channels": tuple(
                channel(f"{name} (1)", messages_unacked=prefetch, stats=stats(deliver=count + prefetch, ack=count))
                for name, count in zip(names, each, strict=True)
            ),
            "connections": tuple(connection(name, client_name="loader") for name in names),
        }

    return frame


@pytest.mark.parametrize("every", [5, 8])
@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ({}, 30),
        ({"every": 45, "comes": 40.0, "prefetch": 100, "named": "audit"}, 45),
        ({"every": 20, "prefetch": 10, "kind": "quorum"}, 20),
        ({"every": 40, "prefetch": 25, "consumers": 2, "comes": 11.0}, 40),
    ],
    ids=["one", "a large prefetch", "quorum", "two"],
)
def test_whole_prefetches_at_once_are_a_batch_that_its_prefetch_limits(change, seconds, every):
    """The first advice is a larger prefetch, and the ceiling is one prefetch in each interval."""
    finding = next(
        each for each in look(film(batching(**change), until=240, every=every)).findings if each.rule == "slow-consumer"
    )
    said = text(finding)
    size = change.get("prefetch", 20)

    assert ("warning", size) == (finding.severity, finding.facts["batch"]["size"])
    assert finding.facts["batch"]["seconds"] == pytest.approx(seconds, rel=0.25)
    assert f"only {size} at once, the whole prefetch" in said.summary
    assert "raise the prefetch to the size of the batch" in str(said.steps)
    assert "Do not raise the prefetch" not in str(said.steps)


@pytest.mark.parametrize(
    "change",
    [
        {"acks": 15},
        {"between": 7},
        {"prefetch": 4, "comes": 2.0},
        {"every": 2},
        {"prefetch": 21, "acks": 20},
    ],
    ids=["less than the prefetch", "some between", "a few in parallel", "one after another", "all but one"],
)
def test_other_acknowledgements_are_of_a_slow_handler(change):
    """Then nothing shows that the prefetch is what limits it."""
    comes = change.pop("comes", 12.0)
    result = look(film(batching(comes=comes, **change), until=240))

    assert ("slow-consumer", "warning", "entries") in found(result)
    finding = next(each for each in result.findings if each.rule == "slow-consumer")
    assert finding.facts["batch"] is None
    assert "Do not raise the prefetch" in str(text(finding).steps)
