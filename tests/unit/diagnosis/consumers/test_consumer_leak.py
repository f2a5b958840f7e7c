import pytest

from tests.unit.diagnosis.consumers.results import found, urgent
from tests.unit.diagnosis.pictures import CHANNEL, PEER, channel, connection, consumer, film, look, queue, stats, text


def subscribing(count, *, apart=False, prefetch=3, queues=1):
    """A client with `count(t)` consumers, on one channel or each on its own, of one queue or each of another."""

    def frame(t):
        numbers = range(count(t))
        names = [f"{PEER} ({number + 1})" if apart else CHANNEL for number in numbers]
        done = int(5 * t)
        counters = stats(publish=done, deliver=done, ack=done)
        return {
            "queues": tuple(queue(f"feed{number}", consumers=count(t), stats=counters) for number in range(queues)),
            "consumers": tuple(
                consumer(f"feed{number % queues}", tag=f"c{number}", channel_name=name, prefetch_count=prefetch)
                for number, name in zip(numbers, names, strict=True)
            ),
            "channels": tuple(
                channel(name, consumer_count=names.count(name), stats=counters) for name in dict.fromkeys(names)
            ),
            "connections": (connection(client_name="reader", channels=len(set(names))),),
        }

    return frame


@pytest.mark.parametrize("every", [0.5, 3.0])
def test_a_client_that_subscribes_again_and_again_is_found(every):
    """With how many consumers it had and has."""
    result = look(film(subscribing(lambda t: 2 + int(t / every)), until=60))
    finding = next(each for each in result.findings if each.rule == "consumer-leak")

    assert ("consumer-leak", "warning", "feed0") == (finding.rule, finding.severity, finding.subject.name)
    assert ("reader", 2 + int(60 / every)) == (finding.facts["client"], finding.facts["consumers"])
    assert finding.facts["consumers_before"] < finding.facts["consumers"]
    assert 3 * finding.facts["consumers"] == finding.facts["prefetch_total"]
    assert "again and again" in text(finding).summary


@pytest.mark.parametrize(
    "frame",
    [
        subscribing(lambda t: min(8, int(t))),
        subscribing(lambda t: 40),
        subscribing(lambda t: 40 - int(t / 5)),
        subscribing(lambda t: 2 + int(t / 2), queues=60),
    ],
    ids=["starts slowly", "many", "fewer and fewer", "one of each queue"],
)
def test_a_client_that_stops_at_a_number_is_left_alone(frame):
    """Nor is one that consumes from many queues."""
    seen = [look(film(frame, until=until)) for until in (10, 20, 30, 60, 100)]

    assert [] == [each for result in seen for each in urgent(result) if each[0] == "consumer-leak"]


def test_a_client_that_scales_up_has_a_channel_for_each_consumer():
    """A channel with one consumer of a queue cannot leak them."""
    frame = subscribing(lambda t: 2 + int(t / 2), apart=True)

    assert "consumer-leak" not in {rule for rule, _, _ in found(look(film(frame, until=60)))}
