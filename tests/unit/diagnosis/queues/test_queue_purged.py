import pytest

from ackscope.findings import Impact, Severity, flat
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import channel, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "queue-purged"


def purged(t, *, backlog=300, at=30.0, publishes=0.0, name="orders", remains=0, delivered=0, **fields):
    """A backlog of which nothing is left from second 30 on but what was published since."""
    published = int(backlog + publishes * t)
    ready = published if t <= at else int(publishes * (t - at)) + remains
    counters = stats(publish=published, deliver=delivered if t > at else 0, ack=delivered if t > at else 0)
    return queue(name, messages_ready=ready, messages_unacked=0, consumers=0, stats=counters, **fields)


def shot(until=60, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(purged(t, **fields)), until=until))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("fields", [{}, {"publishes": 5.0}, {"backlog": 20_000}], ids=["idle", "fills", "large"])
def test_a_queue_that_is_empty_at_once_was_purged(kind, fields):
    """Whether something is published meanwhile or not."""
    assert [("warning", "a.b1")] == of(RULE, shot(name="a.b1", type=kind, **fields))


def test_the_count_is_exact_in_a_queue_without_traffic():
    """With the time between two readings."""
    finding = one(RULE, shot())

    assert (300, 0, 300, 0) == tuple(finding.facts[key] for key in ("purged", "error", "ready_before", "ready_after"))
    assert finding.accounted == 300


def emptied(t, *, every, publishes=14, takes=4):
    """A queue that a job empties every so many seconds, and that its consumer is too slow for."""
    age = t % every
    done = int(takes * t)
    counters = stats(publish=int(publishes * t), deliver=done, deliver_get=done, ack=done)
    return queue("exports", messages_ready=int((publishes - takes) * age), consumers=1, stats=counters)


@pytest.mark.parametrize("every", [22, 27, 33])
def test_a_job_that_purges_again_and_again_accounts_for_all_it_took(every):
    """Each purge is counted, so that the law has nothing left to report."""
    result = look(film(lambda t: frame(emptied(t, every=every)), until=3 * every + 12))

    finding = one(RULE, result)
    assert 3 == finding.facts["times"]
    assert 3 * 10 * every == pytest.approx(finding.accounted, rel=0.25)
    assert [] == of("unexplained-loss", result)


@pytest.mark.parametrize("until", [250, 400, 600])
def test_what_a_job_purged_between_readings_that_are_far_apart_is_its_consequence(until):
    """Older readings do not show each purge, and the law still counts what left."""
    result = look(film(lambda t: frame(emptied(t, every=24)), until=until))

    assert [RULE] == [each.rule for each in result.findings if each.severity is Severity.WARNING and is_loss(each)]


def is_loss(finding):
    """Whether a finding is about messages that were lost."""
    return finding.impact is Impact.LOSS


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"x-message-ttl": 30_000}},
        {"delivered": 300},
        {"remains": 150},
        {"backlog": 3},
    ],
    ids=["TTL", "consumed", "half is left", "three messages"],
)
def test_what_only_resembles_it_is_no_finding(fields):
    """Each differs in one thing."""
    assert [] == of(RULE, shot(**fields))


def filled(t, *, ttl, name="orders"):
    """A queue that fills by 10 messages a second and is emptied at second 30."""
    published = int(10 * t)
    ready = published if t <= 30 else int(10 * (t - 30))
    counters = stats(publish=published)
    return queue(name, messages_ready=ready, consumers=0, stats=counters, arguments={"x-message-ttl": ttl})


@pytest.mark.parametrize(("ttl", "purged_at_once"), [(1000, False), (10_000, False), (60_000, True), (3_600_000, True)])
def test_messages_that_are_younger_than_the_ttl_did_not_expire(ttl, purged_at_once):
    """All messages left at once, and the oldest was half a minute old."""
    result = look(film(lambda t: frame(filled(t, ttl=ttl, name="a.b1")), until=50))

    assert purged_at_once == bool(of(RULE, result))
    assert not (purged_at_once and of("ttl-expiry-loss", result))


def test_a_queue_at_its_length_limit_was_not_purged():
    """New messages replaced all old ones."""

    def full(t):
        counters = stats(publish=int(100 * t))
        return frame(queue(messages_ready=min(50, int(100 * t)), arguments={"x-max-length": 50}, stats=counters))

    assert [] == of(RULE, look(film(full, until=60)))


def test_the_law_does_not_count_the_same_messages_again():
    """They are accounted for."""
    assert [] == of("unexplained-loss", shot())


def test_a_full_queue_that_stays_full_was_not_emptied():
    """What is published to it while it refuses or drops looks like a purge and a refill."""

    def frame(t):
        ready = 59 if t < 60 else 49
        done = int(2.5 * t)
        counters = stats(publish=int(100 + 10 * t), deliver=done, deliver_get=done, ack=done)
        limits = {"x-max-length": 60, "x-overflow": "reject-publish"}
        return {"queues": (queue(messages_ready=ready, arguments=limits, stats=counters),)}

    verdict = look(film(frame, until=70))

    assert [] == of(RULE, verdict)


def test_messages_that_were_delivered_meanwhile_were_not_purged():
    """Consumers took more between two readings than was ready before; what nobody took expired by itself."""

    def taken(t):
        busy = min(t, 30)
        counters = stats(publish=int(10 * busy), deliver=int(5 * busy))
        return frame(queue("a.b1", messages_ready=5 if t <= 30 else 0, stats=counters))

    result = look(film(taken, until=64, every=8))

    assert [] == of(RULE, result)
    assert ["a.b1"] == [name for _, name in of("unexplained-loss", result)]


def test_a_queue_that_a_client_polls_all_the_time_is_purged():
    """Counters are lost only of channels that end; this one is open, so what is gone was not taken unseen."""

    def polled(t, polls):
        done = max(0, min(200, int(20 * (t - 14))))
        got = done // 2
        counters = stats(**({"publish": done, "get": got, "ack": got} if done else {}))
        held = channel(consumer_count=0, stats=stats(get=polls, ack=polls))
        waits = queue("a.b1", consumers=0, messages_ready=0 if t > 36 else done - got, stats=counters)
        return {**frame(waits), "channels": (held,)}

    stays = look(film(lambda t: polled(t, polls=max(0, min(100, int(10 * (t - 14))))), until=60))
    ended = look(film(lambda t: polled(t, polls=0), until=60, every=12))

    assert [("warning", "a.b1")] == of(RULE, stays)
    assert [] == of(RULE, ended)


def test_a_delay_queue_whose_messages_expire_at_once_was_not_purged():
    """They were published at once, with the same expiration, and go on to another queue."""
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "due"}

    assert [] == of(RULE, look(film(lambda t: frame(purged(t, arguments=arguments), due(t)), until=60)))


def due(t):
    """The queue to which they go, and where they are consumed."""
    done = 300 if t > 30 else 0
    return queue("due", stats=stats(**({"deliver": done, "ack": done} if done else {})))


def bursts(t, *, size, late, phase, every=30.0):
    """A consumer takes each burst within 6 s; its counters are refreshed some seconds after those of the publisher."""
    number, age = divmod(t + phase, every)
    done = int(number) * size
    published, delivered = done + size, done + (size if age >= late else 0)
    ready = size // 7 if 1.0 < age < late else 0
    counters = stats(publish=published, deliver=delivered, deliver_get=delivered, ack=delivered)
    return queue("tariffs", messages_ready=ready, messages_unacked=0, consumers=1, stats=counters)


@pytest.mark.parametrize("poll", [5.0, 9.0, 14.0, 16.0, 31.0])
@pytest.mark.parametrize(("size", "late"), [(300, 5.0), (40, 3.0), (9000, 5.5)])
def test_a_burst_just_before_a_late_reading_is_no_loss(poll, size, late):
    """On a busy machine readings are far apart, and the whole burst lies within the delay of the counters."""
    for phase in range(30):
        result = look(film(lambda t: frame(bursts(t, size=size, late=late, phase=phase)), until=6 * poll, every=poll))  # noqa: B023
        assert [] == [each for rule in (RULE, "unexplained-loss", "reject-loss") for each in of(rule, result)]


@pytest.mark.parametrize(("late_length", "late_counters"), [(0.0, 4.0), (3.0, 0.0), (5.0, 0.0)])
@pytest.mark.parametrize(("rate", "at"), [(5, 13.0), (20, 16.0), (300, 18.0)])
def test_a_new_queue_that_is_purged_long_before_its_ttl_lost_nothing_by_expiry(rate, at, late_length, late_counters):
    """At no reading, also before the purge is proven: the broker refreshes its counters and lengths at other times."""

    def published(t):
        return int(rate * min(max(0.0, t), at - 1))

    def emptied_at(t):
        ready = published(t - late_length) if t - late_length < at else 0
        counters = stats(publish=done) if (done := published(t - late_counters)) else stats()
        there = queue("bills", messages_ready=ready, arguments={"x-message-ttl": 900_000}, consumers=0, stats=counters)
        return frame(there)

    verdicts = [look(film(emptied_at, until=until)) for until in range(10, 60, 5)]

    assert "ttl-expiry-loss" not in {each.rule for verdict in verdicts for each in flat(verdict.findings)}


def polled(make, seconds):
    """The result for a queue that was read at these seconds, as a thinned window holds them."""
    window = Window.empty("shop")
    for t in seconds:
        window = window.add(snapshot(t, **frame(make(t))))
    return look(window)


FAR_APART = (0, 40, 60, 80, 90, 100, 110, 120, 125, 130, 135, 140, 145, 150, 155)


@pytest.mark.parametrize(("publishes", "takes"), [(12, 8), (30, 22), (5, 3.5)])
@pytest.mark.parametrize("every", [45, 50])
def test_purges_between_readings_that_are_far_apart_are_counted(every, publishes, takes):
    """Only the latest readings show the queue empty; in others, more came and was delivered than was ready."""
    result = polled(lambda t: emptied(t + 37, every=every, publishes=publishes, takes=takes), FAR_APART)

    finding, number = one(RULE, result), (155 + 37) // every
    low, high = finding.facts["apart_seconds"]
    assert number == finding.facts["times"]
    assert low <= every <= high
    assert [] == of("unexplained-loss", result)
    assert f"{number} times since" in text(finding).summary
    assert "apart" in text(finding).summary


def test_one_purge_does_not_repeat():
    """No interval, and no other purge."""
    finding = one(RULE, polled(lambda t: purged(t, at=147, publishes=4.0), FAR_APART))

    assert (1, []) == (finding.facts["times"], finding.facts["apart_seconds"])
    assert "apart" not in text(finding).summary


def test_what_leaves_all_the_time_beside_a_purge_is_left_to_the_law():
    """Two of seven a second expire before the queue is purged, and they are none of its messages."""

    def make(t):
        left = int(2 * t)
        ready = int(5 * t) if t <= 147 else int(5 * (t - 147))
        return queue("seats", messages_ready=ready, consumers=0, stats=stats(publish=int(5 * t) + left))

    result = polled(make, FAR_APART)

    assert [] == [
        each.facts["times"] for each in flat(result.findings) if each.rule == RULE and each.facts["times"] > 1
    ]
    assert 1 == len(of("unexplained-loss", result))


BURSTS = (
    # limit, messages, rate, first one, seconds until the purge, refresh of the counters, of the length, readings
    (50, 248, 100, 19.0, 30, 2.0, 3.7, (5, 11, 26, 31, 39, 50, 65, 76, 81, 87)),
    (100, 243, 40, 10.3, 3, 4.1, 1.8, (1, 7, 15, 21, 32, 38, 53)),
    (50, 184, 10, 13.4, 3, 2.5, 3.3, (2, 8, 13, 18, 24, 35, 40, 45, 60, 65, 71)),
    (300, 1366, 600, 10.2, 12, 0.9, 2.4, (4, 12, 23, 28, 33, 48, 54)),
    (50, 230, 100, 12.0, 30, 3.9, 1.6, (2, 10, 15, 20, 26, 31, 42, 53, 61, 66, 77)),
    (100, 270, 200, 17.0, 30, 2.8, 0.8, (3, 9, 20, 25, 31, 46, 51, 66, 71, 77, 82)),
)


@pytest.mark.parametrize(("limit", "number", "rate", "start", "purge", "late", "late_length", "seconds"), BURSTS)
def test_what_overflowed_between_late_readings_was_not_purged_earlier(
    limit, number, rate, start, purge, late, late_length, seconds
):
    """The queue filled up and dropped its oldest messages before any reading showed it full; then it was purged."""

    def refreshed(t, phase):
        return (t - phase) // 5.0 * 5.0 + phase

    def published(t):
        return int(max(0, min(number, (t - start) * rate)))

    def make(t):
        at = refreshed(t, late_length)
        ready = 0 if at >= start + number / rate + purge else min(limit, published(at))
        counters = stats(publish=done) if (done := published(refreshed(t, late))) else stats()
        arguments = {"x-max-length": limit}
        return queue("ledger", messages_ready=ready, consumers=0, arguments=arguments, stats=counters)

    result = polled(make, seconds)

    assert [(1, limit)] == [
        (each.facts["times"], each.accounted) for each in flat(result.findings) if each.rule == RULE
    ]
