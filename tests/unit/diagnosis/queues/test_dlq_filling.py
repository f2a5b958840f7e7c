import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, told
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dlq-filling"
INTO = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"}


def picture(t, *, store=None, source=None, rate=4.0):
    """A queue whose consumer rejects 4 messages a second, and the one that they go to."""
    work = {"name": "work", "taken": 4.0, "rejected": rate, "arguments": INTO, **(source or {})}
    kept = {"messages_ready": int(rate * t), "consumers": 0, **(store or {})}
    return frame(queue("bin", **kept), flowing(t, **work))


def shot(until, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_told_early_and_is_a_warning_after_five_minutes():
    """A few poison messages come now and then."""
    assert [] == of(RULE, shot(10))
    assert [("info", "bin")] == of(RULE, shot(25))
    assert [("warning", "bin")] == of(RULE, shot(330))


def test_two_looks_find_it():
    """As `ackscope diagnose` does."""
    window = film(picture, until=6, every=6)

    assert [("warning", "bin")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


def test_the_cause_names_the_queue_that_gives_messages_up_and_why():
    """That is where the remedy starts."""
    finding = one(RULE, shot(40))

    assert "consumers of queue 'work' ('/') reject about 160 in 40 s" in finding.cause
    assert "x-death" in told(finding)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"rejected": 0.0, "arguments": {**INTO, "x-message-ttl": 500}}, "expired in queue 'work'"),
        ({"rejected": 0.0, "ready": 10, "arguments": {**INTO, "x-max-length": 10}}, "at its length limit"),
    ],
    ids=["expired", "pushed out"],
)
def test_other_reasons_are_told_apart(source, words):
    """By the settings of the source, and its balance."""
    assert words in one(RULE, shot(40, source=source)).cause


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"arguments": {}}},
        {"store": {"messages_ready": 500}},
        {"store": {"arguments": {"x-message-ttl": 5000, "x-dead-letter-exchange": "work"}}},
    ],
    ids=["nobody dead-letters into it", "it stands", "a retry by delay"],
)
def test_other_queues_are_left_alone(fields):
    """A full dead-letter queue that does not grow is no news."""
    assert [] == of(RULE, shot(400, **fields))


def test_a_queue_that_is_published_to_grows_for_other_reasons():
    """Dead letters are not counted as published: what was published to it is not one."""

    def direct(t):
        return picture(t, store={"stats": stats(publish=int(4 * t))})

    assert [] == of(RULE, look(film(direct, until=120)))


def test_a_trickle_is_found_after_five_minutes():
    """Three a minute, which no two intervals in a row show."""
    verdict = shot(400, rate=0.05)

    assert [("warning", "bin")] == of(RULE, verdict)


def test_a_few_in_five_minutes_are_no_news():
    """One a minute."""
    assert [] == of(RULE, shot(400, rate=0.015))
