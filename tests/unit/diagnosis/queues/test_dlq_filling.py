import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dlq-filling"
INTO = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"}


def picture(t, *, store=None, source=None, rate=4.0):
    """A queue whose consumer rejects 4 messages per second, and the one that it dead-letters to."""
    work = {"name": "work", "acked": 4.0, "rejected": rate, "arguments": INTO, **(source or {})}
    stored = {"messages_ready": int(rate * t), "consumers": 0, **(store or {})}
    return frame(queue("bin", **stored), flowing(t, **work))


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_information_first_and_a_warning_after_five_minutes():
    """A few poison messages now and then look the same."""
    assert [] == of(RULE, shot(10))
    assert [("info", "bin")] == of(RULE, shot(25))
    assert [("warning", "bin")] == of(RULE, shot(330))


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(picture, until=6, every=6)

    assert [("warning", "bin")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_finding_names_the_queue_that_dead_letters_and_why():
    """That is where the fix starts."""
    finding = one(RULE, shot(40))
    (reason,) = finding.facts["reasons"]

    assert ("rejected", "work", 160, 40.0) == (
        reason["reason"], reason["queue"]["name"], reason["messages"], reason["seconds"],
    )  # fmt: skip
    assert "consumers of queue 'work' in vhost '/' rejected about 160 in 40 s" in text(finding).cause


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"rejected": 0.0, "arguments": {**INTO, "x-message-ttl": 500}}, "expired"),
        ({"rejected": 0.0, "ready": 10, "arguments": {**INTO, "x-max-length": 10}}, "length_limit"),
        ({"rejected": 0.0}, "rejected_or_expired"),
    ],
    ids=["expired", "length limit", "unknown"],
)
def test_other_reasons_are_distinguished(source, reason):
    """By the settings of the source, and its balance."""
    assert [reason] == [each["reason"] for each in one(RULE, shot(40, source=source)).facts["reasons"]]


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"arguments": {}}},
        {"store": {"messages_ready": 500}},
        {"store": {"arguments": {"x-message-ttl": 5000, "x-dead-letter-exchange": "work"}}},
    ],
    ids=["nobody dead-letters into it", "it does not grow", "a delay queue"],
)
def test_other_queues_are_not_reported(fields):
    """A dead-letter queue that does not grow is not reported."""
    assert [] == of(RULE, shot(400, **fields))


def test_a_queue_that_is_published_to_grows_for_other_reasons():
    """Dead letters are not counted as published: a message that was published to it is not one."""

    def direct(t):
        return picture(t, store={"stats": stats(publish=int(4 * t))})

    assert [] == of(RULE, look(film(direct, until=120)))


def test_slow_growth_is_found_after_five_minutes():
    """Three a minute, which no two intervals in a row show."""
    verdict = shot(400, rate=0.05)

    assert [("warning", "bin")] == of(RULE, verdict)


def test_a_few_in_five_minutes_are_not_reported():
    """One a minute."""
    assert [] == of(RULE, shot(400, rate=0.015))


def shared(t, *, acked=0.0):
    """Two consumers of the source: one acknowledges, the other rejects what it is sent, apart from `acked` a second."""
    names = ["10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.8:50001 -> 10.0.0.1:5672"]
    sent, done = int(4 * t), (int(4 * t), int(acked * t))
    return {
        **picture(t, rate=4.0 - acked, source={"acked": 4.0 + acked, "rejected": 4.0 - acked, "consumers": 2}),
        "consumers": tuple(consumer("work", channel_name=f"{name} (1)", connection_name=name) for name in names),
        "channels": tuple(
            channel(f"{name} (1)", connection_name=name, messages_unacked=0, stats=stats(deliver=sent, ack=acks))
            for name, acks in zip(names, done, strict=True)
        ),
        "connections": (connection(names[0], client_name="v2"), connection(names[1], client_name="v1")),
    }


@pytest.mark.parametrize(("acked", "named"), [(0.0, ["v1"]), (3.0, [])], ids=["rejects all", "rejects some"])
def test_a_consumer_that_rejects_all_is_named_if_others_acknowledge(acked, named):
    """An old version that runs beside the new one: the messages are good."""
    finding = one(RULE, look(film(lambda t: shared(t, acked=acked), until=60)))

    assert named == finding.facts["rejecting"] == list(finding.involved.clients)
    assert bool(named) == ("'v1' acknowledged none" in text(finding).cause)


def test_where_a_limit_drops_messages_nobody_is_asked_for_what_consumers_reject():
    """They reject nothing."""
    full = {"rejected": 0.0, "ready": 10, "arguments": {**INTO, "x-max-length": 10}}

    assert "reject" not in str([step.text for step in text(one(RULE, shot(40, source=full))).steps])
