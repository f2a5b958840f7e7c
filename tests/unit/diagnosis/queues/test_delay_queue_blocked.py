import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    WALL,
    channel,
    consumer,
    film,
    look,
    queue,
    stats,
    text,
)
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "delay-queue-blocked"
DELAY = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "due"}


def delays(t, arrivals, *, name="wait", before=0, late=0.0, **fields):
    """A delay queue at second t; `arrivals` are pairs of second and TTL, in order.

    Its publish counter is `late` seconds old, or the number of its messages if negative.
    """
    counted = sum(at <= t - max(0.0, late) for at, _ in arrivals)
    t += min(0.0, late)
    gone, free = 0, 0.0
    published = [each for each in arrivals if each[0] <= t]
    for at, ttl in published:
        free = max(free, at + ttl)
        gone += free <= t
    counters = stats(publish=before + counted)
    merged = {"consumers": 0, "arguments": DELAY, **fields}
    return queue(name, messages_ready=len(published) - gone, stats=counters, **merged), gone


def shop(arrivals, *, until, every=5.0, start=0.0, before=0, idle_since=None, **fields):
    """A delay queue in front of queue `due`, whose consumer acknowledges what arrives at once."""

    def at(t):
        waiting, gone = delays(t, arrivals, before=before, **fields)
        done = before + gone
        due = queue("due", stats=stats(ack=done, deliver=done, deliver_get=done))
        return {
            **frame(waiting, due),
            "consumers": (consumer("due"),),
            "channels": (channel(CHANNEL, idle_since=None if idle_since is None else WALL + idle_since),),
        }

    return film(at, until=until, every=every, start=start)


def steady(ttl, *, rate=10, start=0.0, until=600.0):
    """Messages at a constant rate with the same TTL."""
    return [(start + number / rate, ttl) for number in range(int((until - start) * rate))]


def jammed(ttl, *, at, rate=10, long=3600.0):
    """The same with one message of a long TTL at second `at`."""
    return sorted([*steady(ttl, rate=rate), (at, long)])


@pytest.mark.parametrize("name", ["wait", "a.b1", "orders.delay", "retry"])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_head_that_waits_much_longer_than_others_did_is_a_warning(name, kind):
    """Its name and type do not matter."""
    verdict = look(shop(jammed(3, at=60), until=120, name=name, type=kind))

    assert [("warning", name)] == of(RULE, verdict)
    facts = one(RULE, verdict).facts
    assert (["due"], True, True) == (facts["targets"], facts["stopped"], facts["target_starves"])
    assert 40 <= facts["waited_seconds"] <= 60
    assert facts["usual_seconds"] <= 20


@pytest.mark.parametrize("rate", [0.5, 20])
@pytest.mark.parametrize("late", [-4.5, 0, 4.5])
def test_the_rate_does_not_matter(rate, late):
    """Messages are compared, not rates; counters may be late."""
    assert [("warning", "wait")] == of(RULE, look(shop(jammed(3, at=100, rate=rate), until=180, late=late)))


def test_a_message_ttl_of_the_queue_does_not_matter_if_messages_left_sooner():
    """The setting is a maximum; what was seen counts."""
    window = shop(jammed(3, at=60), until=120, arguments={**DELAY, "x-message-ttl": 3_600_000})

    assert [("warning", "wait")] == of(RULE, look(window))


def test_it_stays_when_the_publishers_stop():
    """The messages are still held back."""
    window = shop([each for each in jammed(3, at=60) if each[0] < 100], until=140)

    assert [("warning", "wait")] == of(RULE, look(window))
    assert one(RULE, look(window)).facts["stopped"]


def test_a_long_message_that_waits_alone_holds_nothing_back():
    """Nothing is behind it."""
    arrivals = [*[each for each in steady(3) if each[0] < 60], (60, 3600.0)]

    assert [] == of(RULE, look(shop(arrivals, until=180)))


def test_messages_that_are_held_back_for_a_minute_at_times():
    """A retry with growing delays in one queue: it is not blocked at present."""
    arrivals = sorted([*steady(3), (60, 60.0), (130, 60.0), (200, 60.0)])

    assert not one(RULE, look(shop(arrivals, until=270))).facts["stopped"]


@pytest.mark.parametrize("ttl", [1, 30, 250])
@pytest.mark.parametrize("late", [-4.5, 0, 4.5])
@pytest.mark.parametrize("rate", [0.2, 4])
def test_messages_that_all_wait_equally_long_are_healthy(ttl, late, rate):
    """However long that is."""
    assert [] == of(RULE, look(shop(steady(ttl, rate=rate), until=400, late=late)))


@pytest.mark.parametrize("ttl", [5, 30, 100])
@pytest.mark.parametrize("period", [20, 60, 150])
@pytest.mark.parametrize("late", [-4.5, 0, 4.5])
def test_bursts_and_pauses_are_healthy(ttl, period, late):
    """In a pause before, nothing was published that could leave now; counters may be late."""
    bursts = [(start + number / 40, ttl) for start in range(0, 600, period) for number in range(40)]

    for until in (310, 435, 540):
        assert [] == of(RULE, look(shop(bursts, until=until, late=late)))


def test_the_first_hour_of_a_long_delay_is_healthy():
    """Nothing left yet."""
    assert [] == of(RULE, look(shop(steady(3600), until=400)))


def test_dead_letters_that_arrive_in_it_are_not_counted_as_published():
    """Such a queue is not judged."""

    def at(t):
        flood = 500 if t > 100 else 0
        waiting, _ = delays(t, steady(20))
        more = queue(
            "wait",
            messages_ready=waiting.messages_ready + flood,
            stats=waiting.stats,
            consumers=0,
            arguments=DELAY,
        )
        return frame(more, queue("due"))

    assert [] == of(RULE, look(film(at, until=160)))


def two_looks(**fields):
    """Two readings, as `ackscope diagnose` takes: the long message came at second 60."""
    return look(
        shop(jammed(3, at=60), start=150, until=157, every=7, **fields),
        thresholds=Thresholds.as_if_lasting(),
    )


def test_two_polls_find_it():
    """The counters show that messages left before."""
    verdict = two_looks()

    assert [("warning", "wait")] == of(RULE, verdict)
    assert one(RULE, verdict).facts["usual_seconds"] is None


def test_the_idle_time_of_the_consumers_behind_it_decides_for_a_queue_with_a_ttl():
    """They became idle when messages began to pile up; after a pause of the publishers they are idle for longer."""
    with_ttl = {"arguments": {**DELAY, "x-message-ttl": 3_600_000}}

    assert [("warning", "wait")] == of(RULE, two_looks(idle_since=63, **with_ttl))
    assert [] == of(RULE, two_looks(idle_since=-600, **with_ttl))
    assert [] == of(RULE, two_looks(**with_ttl))


def test_after_a_pause_the_ttl_decides_and_the_result_says_so():
    """Nothing was seen to leave, and the setting explains it."""
    verdict = two_looks(arguments={**DELAY, "x-message-ttl": 3_600_000})

    assert ["may_not_be_due"] == [each.reason for each in verdict.suppressed if each.rule == RULE]


def test_the_advice_keeps_consumers_and_purges_away():
    """Both lose messages or hurry them."""
    report = text(one(RULE, look(shop(jammed(3, at=60), until=120))))
    commands = " ".join(step.command or "" for step in report.steps)

    assert "purge_queue" not in commands
    assert '"x-message-ttl": 5000' in commands


def test_nothing_else_is_reported():
    """Least of all that it has no consumer."""
    verdict = look(shop(jammed(3, at=60), until=300))

    assert [RULE] == [each.rule for each in verdict.findings]


def test_one_of_two_delay_queues_into_one_target():
    """The other one goes on."""

    def at(t):
        waiting, gone = delays(t, jammed(3, at=60))
        other, more = delays(t, steady(5), name="other")
        done = gone + more
        return frame(waiting, other, queue("due", stats=stats(ack=done, deliver=done, deliver_get=done)))

    verdict = look(film(at, until=150))

    assert [("warning", "wait")] == of(RULE, verdict)
    assert not one(RULE, verdict).facts["target_starves"]


@pytest.mark.parametrize(("publish", "ready"), [((1000, 1098), (970, 1019)), ((1000, 1049), (921, 1019))])
def test_two_polls_between_refreshes_find_it(publish, ready):
    """One of the two numbers was refreshed twice, the other one once."""

    def at(t):
        last = int(t > 0)
        waiting = queue(
            "wait",
            messages_ready=ready[last],
            consumers=0,
            arguments=DELAY,
            stats=stats(publish=publish[last]),
            rates={"publish": 9.8},
        )
        return frame(waiting, queue("due", stats=stats(ack=30, deliver=30, deliver_get=30)))

    verdict = look(film(at, until=6, every=6), thresholds=Thresholds.as_if_lasting())

    assert [("warning", "wait")] == of(RULE, verdict)
    assert 30 == one(RULE, verdict).facts["left_before"]
