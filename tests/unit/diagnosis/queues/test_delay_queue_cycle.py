import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats
from tests.unit.diagnosis.queues.films import binding, exchange, frame, of, one

RULE = "delay-queue-cycle"


def delay(t, name, to, *, published=0.0, ready=0, ttl=3000, **fields):
    """A delay queue that dead-letters to queue `to`."""
    arguments = {"x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
    counters = stats(publish=int(published * t)) if published else stats()
    return queue(name, **{"messages_ready": ready, "consumers": 0, "stats": counters, "arguments": arguments, **fields})


def itself(t, **fields):
    """A queue that dead-letters to itself: 5 messages per second are published, and expire after 3 s."""
    return frame(delay(t, "wait", "wait", published=5.0, ready=15, **fields))


def pair(t, **fields):
    """Two queues that dead-letter to each other."""
    return frame(delay(t, "a", "b", published=5.0, ready=15, **fields), delay(t, "b", "a", ready=15, **fields))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_expires_in_a_circle_is_dropped(kind):
    """It is critical as soon as it is seen."""
    verdict = look(film(lambda t: itself(t, type=kind), until=40))

    assert [("critical", "wait")] == of(RULE, verdict)
    assert one(RULE, verdict).facts["dropped"] >= 150
    assert ["wait", "wait"] == one(RULE, verdict).facts["path"]
    assert [RULE] == [each.rule for each in verdict.findings]


def test_a_circle_of_two_is_one_finding_about_the_queue_that_is_published_to():
    """The other one only gets what expires."""
    verdict = look(film(pair, until=40))

    assert [("critical", "a")] == of(RULE, verdict)
    assert [RULE] == [each.rule for each in verdict.findings]


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    verdict = look(film(lambda t: frame(delay(t, "wait", "wait", published=10.0, ready=30)), until=7, every=7),
                   thresholds=Thresholds.as_if_lasting())  # fmt: skip

    assert [("critical", "wait")] == of(RULE, verdict)


def test_at_least_once_dead_letters_are_stored():
    """Nothing is lost, and the queue grows."""

    def at(t):
        kept = int(5 * t)
        return frame(
            delay(t, "wait", "wait", published=5.0, messages=kept, messages_ready=0, messages_dlx=kept, type="quorum")
        )

    verdict = look(film(at, until=90))

    assert [("warning", "wait")] == of(RULE, verdict)
    assert 450 == one(RULE, verdict).facts["stored"]


def test_before_the_first_one_expires_it_is_a_warning():
    """They will be dropped."""

    def at(t):
        return frame(delay(t, "wait", "wait", published=5.0, ready=int(5 * t), ttl=3_600_000))

    assert [("info", "wait")] == of(RULE, look(film(at, until=30)))
    assert [("warning", "wait")] == of(RULE, look(film(at, until=90)))


@pytest.mark.parametrize(
    "parts",
    [
        lambda t: frame(delay(t, "a", "b", published=5.0, ready=15), delay(t, "b", "work"), queue("work")),
        lambda t: frame(delay(t, "a", "work", published=5.0, ready=15), delay(t, "work", "a", consumers=1)),
        lambda t: frame(
            delay(t, "a", "work", published=5.0, ready=15),
            delay(t, "work", "a", ready=5, stats=stats(publish=100, deliver=50, ack=50)),
        ),
        lambda t: frame(
            delay(t, "a", None, published=5.0, ready=15, arguments={"x-message-ttl": 5, "x-dead-letter-exchange": "x"}),
            queue("work"),
            exchanges=[exchange("x")],
            bindings=[binding("x", "a"), binding("x", "work")],
        ),
        lambda t: frame(delay(t, "wait", "wait")),
    ],
    ids=["a chain", "a retry", "a retry whose consumer is away", "a second way out", "never used"],
)
def test_other_ways_of_dead_letters_are_not_reported(parts):
    """A consumer gets the messages."""
    assert [] == of(RULE, look(film(parts, until=120)))


def retrying(t, *, published=8.0, acked=3.0, rejected=0.0, hops=1, ttl=2000, ready=16, out=None):
    """A work queue whose messages expire into delay queues that lead back to it."""
    names = ["pay", *(f"wait{number}" for number in range(hops))]
    to = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": names[1]}
    settled = int((acked + rejected) * t)
    counters = stats(publish=int(100 + published * t), ack=int(acked * t), deliver=settled + 1)
    limit = {} if ttl is None else {"x-message-ttl": ttl}
    work = queue("pay", messages_ready=ready, messages_unacked=1, stats=counters, arguments={**to, **limit})
    last = out or "pay"
    delays = [delay(t, name, names[place + 2] if place + 2 < len(names) else last, ready=9)
              for place, name in enumerate(names[1:])]  # fmt: skip
    return frame(work, *delays, *([queue(out)] if out else []))


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("rejected", [0.0, 2.0])
def test_what_expires_in_a_work_queue_and_comes_back_is_dropped(hops, rejected):
    """However many delay queues are on the way; what is rejected comes back, and is not counted."""
    verdict = look(film(lambda t: retrying(t, hops=hops, rejected=rejected), until=60))
    finding = one(RULE, verdict)

    assert [("critical", "pay")] == of(RULE, verdict)
    assert 0.5 * 60 * (5 - rejected) <= finding.facts["dropped"] <= 60 * (5 - rejected)
    assert hops + 2 == len(finding.facts["path"])
    assert [RULE] == [each.rule for each in verdict.findings if each.severity != "info"]


@pytest.mark.parametrize(
    "fields",
    [{"acked": 8.0}, {"acked": 5.0, "rejected": 3.0}, {"ttl": None, "acked": 5.0, "rejected": 3.0}, {"out": "failed"}],
    ids=["nothing expires", "all are rejected", "no TTL", "leads elsewhere"],
)
def test_a_retry_that_works_is_left_alone(fields):
    """Rejected messages may come round for good."""
    assert [] == of(RULE, look(film(lambda t: retrying(t, **fields), until=60)))
