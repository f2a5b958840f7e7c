"""AMQP 0-9-1 readers of streams that are sent less than is published, also by the broker's own samples."""

from dataclasses import replace

import pytest

from ackscope.findings import Severity, flat
from ackscope.snapshot import Part, Snapshot
from diagnosis.brief import diagnose_briefly
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.test_stream_retention_loss import over_amqp, two_readers
from tests.unit.diagnosis.pictures import connection, film, full_text, look, moment, snapshot, stats


def sampled(seconds, frame):
    """A snapshot of the past: the lengths and counters of queues, as the broker samples them."""
    queues = tuple(replace(each, consumers=None) for each in frame(seconds)["queues"])
    return Snapshot(cluster="shop", taken=moment(seconds), queues=Part(value=queues, at=moment(seconds)))


def one_look(frame, *, begin=0, at=300):
    """The diagnosis of two snapshots 10 s apart, with what the broker sampled since `begin`; None is no samples."""
    window = Window.empty("shop")
    if begin is not None:
        for second in (*range(begin, at - 70, 60), *range(max(begin, at - 70), at - 12, 5)):
            window = window.add(sampled(second, frame))
    for second in (at - 10, at):
        window = window.add(snapshot(second, **frame(second)))
    return diagnose_briefly(window, (), window.latest.taken)


def named(verdict, *rules):
    """Rule -> finding of some rules, also those beneath others."""
    return {each.rule: each for each in flat(verdict.findings) if each.rule in rules}


def slow(verdict):
    """The finding of slow-consumer; None without one."""
    return named(verdict, "slow-consumer").get("slow-consumer")


BOTH = ("slow-consumer", "stream-retention-loss")


def since(begin, frame):
    """The same clients, connected at this second."""

    def made(t):
        parts = frame(t)
        parts["connections"] = tuple(replace(each, connected_at=moment(begin).wall) for each in parts["connections"])
        return parts

    return made


@pytest.mark.parametrize(("rate", "reads", "kept"), [(40.0, 8.0, 446), (6.0, 2.0, 90), (900.0, 350.0, 20_000)])
def test_one_look_names_a_reader_and_what_it_lost(rate, reads, kept):
    """The samples of minutes show that it is sent less than is published, and that the rest is not stored."""
    verdict = one_look(since(0, lambda t: over_amqp(t, rate=rate, reads=reads, kept=min(kept, int(rate * t)))))
    found = named(verdict, *BOTH)

    assert set(BOTH) == set(found)
    assert Severity.CRITICAL is found["stream-retention-loss"].severity
    assert 0 < found["stream-retention-loss"].facts["missed"] <= (rate - reads) * 300 - kept
    assert ("loader-0",) == found["slow-consumer"].involved.clients
    assert (pytest.approx(rate, rel=0.1), pytest.approx(reads, rel=0.1)) == (
        found["slow-consumer"].facts["publish_rate"],
        found["slow-consumer"].facts["ack_rate"],
    )
    assert "from the end, which" not in full_text(found["slow-consumer"])


def test_without_samples_one_look_says_what_it_becomes():
    """Ten seconds may be a burst."""
    finding = slow(one_look(since(0, over_amqp), begin=None))

    assert (Severity.INFO, Severity.WARNING) == (finding.severity, finding.if_it_lasts)
    assert "A burst looks the same; after 2 min this is a warning" in full_text(finding)


@pytest.mark.parametrize("readers", [1, 2])
def test_readers_of_a_stream_without_retention_fall_behind(readers):
    """Nothing is lost, but all of them together get less than is published."""

    def stored(t):
        made = over_amqp(t, readers=readers, kept=int(40 * t))
        return {**made, "queues": tuple(replace(each, arguments={}) for each in made["queues"])}

    verdict = look(film(since(0, stored), until=200))
    finding = slow(verdict)

    assert {"slow-consumer"} == set(named(verdict, *BOTH))
    assert ("warning", readers) == (finding.severity.value, finding.facts["consumers"])
    assert "Start more consumers" not in full_text(finding)
    assert "A second reader of the same stream does not help" in full_text(finding)


def catches_up(t):
    """A reader that began with the first message a minute ago, of the 9,600 that were there."""
    made = over_amqp(t, kept=int(40 * t), stream_offset="first", readers=int(t >= 240))
    read = int(90 * max(0.0, t - 240))
    (stream,) = made["queues"]
    counters = stats(publish=int(40 * t), deliver=read, ack=read)
    channels = tuple(replace(each, stats=stats(deliver=read, ack=read)) for each in made["channels"])
    return {**made, "queues": (replace(stream, stats=counters),), "channels": channels}


def comes_and_goes(t, *, before=8.0, began=291.0):
    """Another reader read until the 200th second, none until this one came, and both were slow."""
    made = over_amqp(t, readers=int(t > began))
    mine = int(8 * max(0.0, t - began))
    (stream,) = made["queues"]
    sent = int(before * min(t, 200.0)) + mine
    channels = tuple(replace(each, stats=stats(deliver=mine, ack=mine)) for each in made["channels"])
    return {**made, "queues": (replace(stream, stats=stats(publish=int(40 * t), deliver=sent)),), "channels": channels}


def takes_over(t):
    """Another reader was slow until the 285th second; this one, connected for long, has read for 15 s since."""
    made = over_amqp(t)
    mine = int(40 * max(0.0, t - 285))
    (stream,) = made["queues"]
    sent = int(8 * min(t, 285.0)) + mine
    channels = tuple(replace(each, stats=stats(deliver=mine, ack=mine)) for each in made["channels"])
    return {**made, "queues": (replace(stream, stats=stats(publish=int(40 * t), deliver=sent)),), "channels": channels}


CALM = {
    "keeps up": lambda t: over_amqp(t, reads=40.0),
    "nearly keeps up": lambda t: over_amqp(t, reads=38.5),
    "several get all": lambda t: over_amqp(t, reads=40.0, readers=3),
    "catches up": since(240, catches_up),
    "filter": lambda t: over_amqp(t, filtered=True),
    "just came": since(297, lambda t: comes_and_goes(t, began=297.0)),
    "took over": since(0, takes_over),
    "publishes nothing": lambda t: over_amqp(t, rate=0.0, reads=0.0),
    "one of several keeps up": lambda t: two_readers(t, offset="next", kept=3000),
}


@pytest.mark.parametrize("begin", [0, None], ids=["samples", "no samples"])
@pytest.mark.parametrize("calm", CALM.values(), ids=CALM)
def test_who_does_not_fall_behind(calm, begin):
    """Readers are at the end, come nearer to it, or have just come."""
    assert {} == named(one_look(calm, begin=begin), *BOTH)


def test_who_came_now_has_lost_nothing_of_what_was_before():
    """It is slow, but only for the ten seconds since it came, whatever another reader was sent before."""
    verdict = one_look(since(281, lambda t: comes_and_goes(t, began=281.0)))
    found = named(verdict, *BOTH)

    assert "stream-retention-loss" not in found
    assert all(each.severity is Severity.INFO and each.seen_seconds <= 20 for each in found.values())


def test_a_burst_that_was_caught_up_before_is_not_counted():
    """A connection whose age is not known proves nothing about the time before the look."""
    verdict = one_look(lambda t: {**over_amqp(t), "connections": (connection("other"),)})

    assert "stream-retention-loss" not in named(verdict, *BOTH)
