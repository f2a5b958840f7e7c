from dataclasses import replace

import pytest

from diagnosis.brief import diagnose_briefly
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    WALL,
    channel,
    connection,
    consumer,
    film,
    look,
    queue,
    snapshot,
    stats,
    text,
)


def polled(*, rate=6.0, name="exports", kind="quorum", acks=lambda t: 0, until=None, other=0, opened=WALL):
    """A client that polls; `acks` is how many messages it has acknowledged at a time; `opened` is when it came."""

    def frame(t):
        got = int(rate * (t if until is None else min(t, until)))
        acked = min(got, acks(t))
        held = got - acked
        counters = stats(publish=got + 5, get=got, get_empty=3, **({"ack": acked} if acked else {}))
        many = held if kind == "quorum" else 0
        named = [queue(name, type=kind, messages_ready=5, messages_unacked=held, consumers=many, stats=counters)]
        named += [queue(f"other{number}", messages_unacked=held, stats=stats(get=held)) for number in range(other)]
        idle = None if until is None or t <= until else 1_800_000_000.0 + until
        return {
            "queues": tuple(named),
            "channels": (channel(consumer_count=0, messages_unacked=held, stats=counters, idle_since=idle),),
            "connections": (connection(client_name="cron", connected_at=opened),),
        }

    return frame


@pytest.mark.parametrize("kind", ["quorum", "classic"])
@pytest.mark.parametrize("rate", [0.5, 40.0])
def test_what_is_polled_and_never_settled_is_a_warning(kind, rate):
    """It grows without a limit, and the number of consumers of a quorum queue means nothing."""
    finding = only(look(film(polled(kind=kind, rate=rate), until=70)))

    assert ("polled-unacked", "warning", "exports") == (finding.rule, finding.severity, finding.subject.name)
    assert ("cron", int(70 * rate), True) == tuple(finding.facts[key] for key in ("client", "unacked", "grows"))
    assert "basic.get" in text(finding).summary


def test_it_is_information_for_as_long_as_a_batch_looks_the_same():
    """The finding says when it becomes a warning."""
    assert [] == urgent(look(film(polled(), until=35)))
    assert [("polled-unacked", "info", "exports")] == found(look(film(polled(), until=35)))


@pytest.mark.parametrize("work", [8, 20])
def test_a_client_that_acknowledges_its_batches_is_left_alone(work):
    """What it holds falls with each batch."""
    frame = polled(acks=lambda t: int(6 * (t // work * work)))

    assert {"info"} >= {
        severity for until in (30, 60, 90, 200) for _, severity, _ in found(look(film(frame, until=until)))
    }


def test_one_long_job_is_no_fault():
    """A client that works on a single message for minutes."""
    assert [] == urgent(look(film(polled(rate=1.0, until=1), until=200)))


def test_where_several_queues_fit_the_client_is_the_subject():
    """The API does not say from which queue a channel polled."""
    finding = next(each for each in look(film(polled(other=1), until=70)).findings if each.rule == "polled-unacked")

    assert ("connection", CHANNEL.rsplit(" (", 1)[0]) == (finding.subject.kind, finding.subject.name)
    assert {"exports", "other0"} == set(finding.facts["queues"])


def test_a_client_that_hangs_after_batches_is_found():
    """It settled before, so it gets three times as long as a batch took."""
    frame = polled(acks=lambda t: int(6 * min(60, t // 10 * 10)), until=70)

    assert "polled-unacked" in ever([look(film(frame, until=160))])
    assert [] == urgent(look(film(frame, until=75)))


def one_look(frame, *, at=600, samples=True, step=6):
    """The severities of the rule after two readings; with `samples`, queues are known of ten minutes before."""
    window = Window.empty("shop")
    for seconds in (*range(at - 600, at - 60, 60), *range(at - 60, at, 5)) if samples else ():
        past = tuple(replace(each, consumers=None) for each in frame(float(seconds))["queues"])
        sample = snapshot(float(seconds), queues=past)
        window = window.add(replace(sample, channels=replace(sample.channels, value=None, at=None)))
    for seconds in (at, at + step):
        window = window.add(snapshot(float(seconds), **frame(float(seconds))))
    result = diagnose_briefly(window, (), window.latest.taken)
    return [each.severity.value for each in result.findings if each.rule == "polled-unacked"]


def served(frame):
    """The same queue, which a consumer serves as well: its messages are acknowledged all the time."""

    def at(t):
        made = frame(t)
        (own,) = made["queues"]
        done = replace(own.stats, deliver=int(20 * t), ack=int(20 * t), publish=(own.stats.publish or 0) + int(20 * t))
        return {
            **made,
            "queues": (replace(own, stats=done, consumers=1),),
            "consumers": (consumer(own.name, channel_name="w"),),
        }

    return at


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("rate", [0.5, 6.0, 80.0])
@pytest.mark.parametrize("other", [0, 1])
@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_one_look_knows_by_its_pace_how_long_a_client_settles_nothing(samples, rate, other, kind):
    """It holds all that it ever polled, so also where its queue is not known, or the broker keeps no samples."""
    frame = polled(rate=rate, other=other, kind=kind)

    assert ["warning"] == one_look(frame, samples=samples)


@pytest.mark.parametrize("samples", [True, False])
def test_one_look_finds_it_beside_a_consumer_that_works(samples):
    """The queue settles messages all the time; the channel that polls settles none."""
    assert ["warning"] == one_look(served(polled(rate=6.0, kind="classic")), samples=samples)


def test_one_look_finds_a_client_that_hangs_after_batches():
    """The samples of its queue tell how long a batch took, and since when none was acknowledged."""
    assert ["warning"] == one_look(polled(acks=lambda t: int(6 * min(400, t // 10 * 10))), at=640)


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"rate": 6.0}, 20),
        ({"rate": 0.5}, 30),
        ({"rate": 6.0, "opened": WALL + 570}, 600),
        ({"rate": 6.0, "opened": None}, 600),
    ],
    ids=["just begun", "just begun, few", "just connected", "age unknown"],
)
def test_one_look_does_not_blame_a_client_that_may_collect_a_batch(fields, at):
    """It has not held its first message for long, or that is not known; without samples, nothing else tells."""
    assert "warning" not in one_look(polled(**fields), at=at, samples=False)


@pytest.mark.parametrize("work", [8, 20, 40])
@pytest.mark.parametrize("samples", [True, False])
def test_one_look_leaves_a_client_alone_that_acknowledges_its_batches(work, samples):
    """At whatever moment of a batch somebody looks."""
    frame = polled(acks=lambda t: int(6 * (t // work * work)))

    assert {"info"} >= {severity for at in range(600, 640, 5) for severity in one_look(frame, at=at, samples=samples)}
