import pytest

from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, snapshot, stats, text


def leaking(*, share=0.2, rate=10.0, prefetch=0, kind="classic", named="orders", before=0):
    """A consumer that never settles a share of what it takes."""

    def frame(t):
        delivered = int(rate * t) + before
        held = int(share * rate * t)
        counters = stats(publish=delivered, deliver=delivered, ack=delivered - held)
        return {
            "queues": (queue(named, type=kind, messages_unacked=held, stats=counters),),
            "consumers": (consumer(named, prefetch_count=prefetch),),
            "channels": (channel(messages_unacked=held, prefetch_count=prefetch, stats=counters),),
            "connections": (connection(),),
        }

    return frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prefetch": 250},
        {"prefetch": 500, "before": 3_000},
        {"kind": "quorum", "share": 0.1, "rate": 40.0, "named": "events"},
        {"share": 0.5, "rate": 1.0},
        {"before": 100_000},
    ],
    ids=["no limit", "limit", "limit, in an old queue", "quorum", "slow", "in an old queue"],
)
def test_what_is_never_settled_is_a_warning_whatever_the_prefetch(change):
    """Acknowledgements go on, and what is held only grows."""
    finding = next(each for each in look(film(leaking(**change), until=75)).findings if each.rule == "unacked-grows")

    assert ("warning", change.get("named", "orders")) == (finding.severity, finding.subject.name)
    assert abs(change.get("share", 0.2) - finding.facts["unsettled_share"]) < 0.05
    assert ["billing"] == finding.facts["clients"]


def scheduled(*, after=35.0, every=11, rate=3.0, prefetch=40):
    """One of `every` messages is held until a time, `after` seconds later; the consumer has just started."""

    def frame(t):
        delivered = int(rate * t)
        held = delivered // every - int(rate * max(0.0, t - after)) // every
        taken = {"deliver": delivered, "ack": delivered - held}
        return {
            "queues": (queue("mails", messages_unacked=held, stats=stats(publish=delivered, **taken)),),
            "consumers": (consumer("mails", prefetch_count=prefetch),),
            "channels": (channel(messages_unacked=held, prefetch_count=prefetch, stats=stats(**taken)),),
            "connections": (connection(client_name="celery@w1"),),
        }

    return frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"after": 110.0, "prefetch": 90},
        {"after": 60.0, "rate": 40.0, "prefetch": 900},
        {"every": 3, "after": 20.0, "prefetch": 100},
    ],
)
def test_scheduled_jobs_of_a_consumer_that_has_just_started_are_information(change):
    """What is held grows until the first of them is due. It has room in its prefetch for them."""
    for until in range(30, 280, 10):
        assert [] == urgent(look(film(scheduled(**change), until=until))), until


def test_a_leak_since_the_start_of_a_consumer_is_a_warning_before_its_prefetch_is_used_up():
    """It has room for 1,200, and holds 540 by then."""
    findings = look(film(leaking(prefetch=1200), until=270)).findings

    assert ["warning"] == [each.severity for each in findings if each.rule == "unacked-grows"]


def test_it_is_information_for_some_seconds():
    """A client that warms up looks the same."""
    assert [] == urgent(look(film(leaking(prefetch=500), until=35)))
    assert [("unacked-grows", "info", "orders")] == found(look(film(leaking(prefetch=500), until=35)))


def test_two_readings_show_it_if_the_whole_life_of_the_queue_does():
    """As large a share of all deliveries is held as of those between the two readings."""
    once = Thresholds.as_if_lasting()

    young = look(film(leaking(prefetch=500), until=66, every=6, start=60), thresholds=once)
    old = look(film(leaking(prefetch=500, before=100_000), until=66, every=6, start=60), thresholds=once)

    assert [("unacked-grows", "info", "orders")] == found(young)
    assert "unacked-grows" not in ever([old])


@pytest.mark.parametrize("until", [40, 150])
def test_a_consumer_that_stays_full_held_more_only_until_then(until):
    """Traffic rises above what it can handle; from second 50 on its prefetch is full, and messages wait."""

    def frame(t):
        held, acked = int(min(100, 2 * t)), int(8 * t)
        counters = stats(publish=int(10 * t), deliver=acked + held, ack=acked)
        return {
            "queues": (
                queue("orders", messages_ready=int(max(0, 2 * t - 100)), messages_unacked=held, stats=counters),
            ),
            "consumers": (consumer("orders", prefetch_count=100),),
            "channels": (channel(messages_unacked=held, prefetch_count=100, stats=counters),),
            "connections": (connection(),),
        }

    rules = [each.rule for each in look(film(frame, until=until)).findings]

    assert (until < 50) is ("unacked-grows" in rules)


def bursts(polls, *, prefetch=20):
    """A burst of 300 messages each 30 s, which one consumer with a prefetch handles in 6 s; polled at these times."""

    def frame(t):
        done = min(300, int((t % 30) * 50))
        waiting = 300 - done
        held = min(waiting, prefetch or waiting)
        total = 300 * int(t // 30)
        counters = stats(publish=total + 300, deliver=total + done + held, ack=total + done)
        return {
            "queues": (queue("orders", messages_ready=waiting - held, messages_unacked=held, stats=counters),),
            "consumers": (consumer("orders", prefetch_count=prefetch),),
            "channels": (channel(messages_unacked=held, prefetch_count=prefetch, stats=counters),),
            "connections": (connection(),),
        }

    window = Window.empty("shop")
    for t in polls:
        window = window.add(snapshot(t, **frame(t)))
    return look(window)


@pytest.mark.parametrize("prefetch", [0, 20])
@pytest.mark.parametrize(
    "polls",
    [(95.4,), (95.7,), (95.7, 125.4), (95.9, 111.0, 125.6)],
    ids=["in a burst", "at its end", "in two", "in two, and between"],
)
def test_bursts_that_a_consumer_handles_are_no_growth(polls, prefetch):
    """All polls but the last ones fall between two bursts, so that nothing was held before."""
    result = bursts((20.0, 50.0, 80.0, *polls), prefetch=prefetch)

    assert "unacked-grows" not in [each.rule for each in result.findings if each.severity != "info"]


def test_one_client_that_leaks_on_three_queues_is_one_finding():
    """They share its connection."""

    def frame(t):
        frames = [leaking(named=name)(t) for name in ("a", "b", "c")]
        return {
            "queues": tuple(each["queues"][0] for each in frames),
            "consumers": tuple(
                consumer(name, tag=name, channel_name=f"10.0.0.7:50001 -> 10.0.0.1:5672 ({number})", prefetch_count=900)
                for number, name in enumerate("abc", 1)
            ),
            "channels": tuple(
                channel(f"10.0.0.7:50001 -> 10.0.0.1:5672 ({number})", messages_unacked=int(2 * t))
                for number in (1, 2, 3)
            ),
            "connections": (connection(channels=3),),
        }

    finding = only(look(film(frame, until=75)))

    assert "unacked-grows" == finding.rule
    assert ["unacked-grows"] * 2 == [each.rule for each in finding.consequences]


def one_of(t, *, workers, rate, stuck_from=0, kind="classic"):
    """Consumers without a prefetch share a queue; the first one settles nothing from a second on."""
    share = rate / workers
    made, held = [], int(share * max(0, t - stuck_from))
    for number in range(workers):
        taken = int(share * t)
        unacked = held if number == 0 else 0
        made.append((f"10.0.0.{number + 2}:50000 -> 10.0.0.1:5672", taken, unacked))
    delivered = sum(taken for _, taken, _ in made)
    counters = stats(publish=delivered, deliver=delivered, ack=delivered - held)
    return {
        "queues": (queue("tiles", type=kind, consumers=workers, messages_unacked=held, stats=counters),),
        "consumers": tuple(
            consumer("tiles", tag=f"c{port}", channel_name=f"{port} (1)", connection_name=port, prefetch_count=0)
            for port, _, _ in made
        ),
        "channels": tuple(
            channel(
                f"{port} (1)",
                messages_unacked=unacked,
                stats=stats(deliver=taken, ack=taken - unacked),
            )
            for port, taken, unacked in made
        ),
        "connections": tuple(connection(port, client_name=f"worker-{n}") for n, (port, _, _) in enumerate(made)),
    }


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(("workers", "rate"), [(2, 5.0), (3, 24.0), (6, 90.0)])
def test_one_of_several_that_settles_nothing_is_named_as_such(workers, rate, kind):
    """The others work, so no path of its handler is to blame."""
    result = look(film(lambda t: one_of(t, workers=workers, rate=rate, kind=kind), until=75))
    finding = next(each for each in result.findings if each.rule == "unacked-grows")
    said = text(finding)

    assert ("warning", True) == (finding.severity, finding.facts["settles_none"])
    assert said.summary.startswith("'worker-0' settles none of the messages that it takes from queue 'tiles'")
    assert f"about {round(100 / workers)} of each 100 messages" in said.cause
    assert "path" not in said.cause


def test_a_share_that_stays_unsettled_is_not_all_of_it():
    """Here some are acknowledged by the same consumer."""
    finding = next(each for each in look(film(leaking(), until=75)).findings if each.rule == "unacked-grows")

    assert not finding.facts["settles_none"]
    assert "Some of its messages are never settled" in text(finding).cause


def in_batches(*, rate, every, phase):
    """A consumer that acknowledges all that it has every so many seconds."""

    def frame(t):
        delivered = int(rate * (t + 100))
        acked = int(rate * ((t + 100 + phase) // every * every - phase))
        counters = stats(publish=delivered, deliver=delivered, ack=acked, deliver_get=delivered)
        held = delivered - acked
        return {
            "queues": (queue("a.b1", messages_unacked=held, stats=counters),),
            "consumers": (consumer("a.b1", prefetch_count=0),),
            "channels": (channel(messages_unacked=held, stats=counters),),
            "connections": (connection(),),
        }

    return frame


@pytest.mark.parametrize("every", [16.7, 18.0, 20.0, 40.0])
@pytest.mark.parametrize("rate", [6.0, 80.0])
@pytest.mark.parametrize("poll", [15.0, 19.0])
def test_batches_that_are_read_at_about_their_own_pace_do_not_grow(rate, every, poll):
    """Each reading comes a little later within a batch, so each shows more messages than the one before."""
    for phase in range(0, 20, 4):
        for until in (90, 150, 210):
            result = look(film(in_batches(rate=rate, every=every, phase=phase), until=until, every=poll))
            assert [] == [each for each in result.findings if each.rule == "unacked-grows"]


@pytest.mark.parametrize("poll", [15.0, 20.0])
def test_what_only_grows_is_seen_by_readings_that_are_far_apart(poll):
    """More is held than is acknowledged between two of them."""
    result = look(film(leaking(share=0.5), until=180, every=poll))

    assert ["unacked-grows"] == [each.rule for each in result.findings if each.rule == "unacked-grows"]
