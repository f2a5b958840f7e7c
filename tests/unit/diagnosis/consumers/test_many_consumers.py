"""Many consumers of one queue on one channel, seen in one look."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from diagnosis.brief import diagnose_briefly
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def many(*counts, name="mail.out"):
    """Clients of one application with `count(t)` consumers each, on one channel each."""
    peers = [f"10.0.7.{number}:41000 -> 10.0.0.1:5672" for number in range(len(counts))]

    def frame(t):
        done = int(7 * t)
        counters = stats(publish=done, deliver=done, ack=done)
        numbers = [count(t) for count in counts]
        return {
            "queues": (queue(name, consumers=sum(numbers), stats=counters),),
            "consumers": tuple(
                consumer(name, tag=f"c{each}", channel_name=f"{peer} (1)", connection_name=peer)
                for peer, number in zip(peers, numbers, strict=True)
                for each in range(number)
            ),
            "channels": tuple(
                channel(f"{peer} (1)", consumer_count=number, stats=counters)
                for peer, number in zip(peers, numbers, strict=True)
            ),
            "connections": tuple(connection(peer, client_name="mailer") for peer in peers),
        }

    return frame


def leaks(result):
    """Severity and text of each finding of consumer-leak."""
    return [(each.severity, text(each).summary) for each in flat(result.findings) if each.rule == "consumer-leak"]


def one_look(frame, begin=60.0, seconds=6.0):
    """The findings of two readings."""
    window = film(frame, until=begin + seconds, every=seconds, start=begin)
    return leaks(diagnose_briefly(window, (), replace(window.latest.taken)))


@pytest.mark.parametrize("every", [2.0, 3.0, 5.0])
def test_one_look_finds_a_channel_with_many_that_gets_more(every):
    """Beside a few elsewhere."""
    ((severity, summary),) = one_look(many(lambda t: 1 + int(t / every), lambda t: 1))

    assert "warning" == severity
    assert "'mailer' subscribes to queue 'mail.out'" in summary


def test_a_number_that_stays_the_same_is_information_if_it_is_large():
    """And nothing if it is not."""
    alone, alike, few = (one_look(many(*each)) for each in ((lambda t: 35,), (lambda t: 32,) * 3, (lambda t: 16,) * 2))

    assert [("info", True)] == [(severity, "none was added" in summary) for severity, summary in alone]
    assert ["info"] * 3 == [severity for severity, _ in alike]
    assert all("as on each of its 3 channels" in summary for _, summary in alike)
    assert [] == few


def test_the_exporter_says_so_as_long_as_it_goes_on():
    """A warning while it rises; information when it has stopped at a large number."""

    def seen(until):
        return [severity for severity, _ in leaks(look(film(many(lambda t: min(44, 12 + int(t / 3))), until=until)))]

    assert ["warning"] == seen(15) == seen(60)
    assert ["info"] == seen(200)


def test_few_consumers_are_not_reported_at_once():
    """A client may still be at its start."""
    assert [] == one_look(many(lambda t: 1 + int(t / 10)))
