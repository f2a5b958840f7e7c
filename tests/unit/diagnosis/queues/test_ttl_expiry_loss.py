import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, told
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "ttl-expiry-loss"
TTL = {"x-message-ttl": 500}


def expiring(t, **fields):
    """A queue whose messages live half a second: 8 a second come, 2 are taken."""
    return flowing(t, **{"taken": 2.0, "ready": 3, "unacked": 1, "arguments": TTL, **fields})


def shot(until, **fields):
    """The verdict on that queue after so many seconds."""
    return look(film(lambda t: frame(expiring(t, **fields)), until=until))


def test_it_is_told_early_and_is_a_warning_after_five_minutes():
    """As the catalogue says."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(330))


def test_the_finding_says_how_long_messages_live_and_what_is_taken():
    """Two numbers that do not fit together."""
    finding = one(RULE, shot(40))

    assert "At least 240 messages of 320 expired in queue 'orders' ('/')" in finding.summary
    assert "longer than 500 ms" in finding.cause
    assert "the TTL is an argument" in told(finding)


def test_two_looks_find_it():
    """As `ackscope diagnose` does."""
    window = film(lambda t: frame(expiring(t)), until=6, every=6)

    assert [("warning", "orders")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


def test_a_policy_can_be_changed_at_once():
    """Ten times as long, to win time."""
    by_policy = {"arguments": {}, "effective_policy": {"message-ttl": 500}, "policy": "short"}

    text = told(one(RULE, shot(40, **by_policy)))

    assert """'{"message-ttl": 5000}'""" in text
    assert "replaces policy 'short'" in text


def test_without_consumers_it_may_be_a_store_of_what_is_recent():
    """A fact, and no alarm."""
    assert [("info", "orders")] == of(RULE, shot(400, consumers=0, taken=0.0, unacked=0))


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {}},
        {"taken": 8.0},
        {"taken": 2.0, "rejected": 6.0},
        {"exclusive": True},
        {"auto_delete": True},
        {"consumers": 0, "taken": 0.0, "arguments": {**TTL, "x-dead-letter-exchange": "work"}},
        {"arguments": {**TTL, "x-max-length": 3}},
    ],
    ids=["no TTL", "keeps up", "rejected", "private", "ends with its client", "delay", "at its length limit"],
)
def test_other_queues_are_left_alone(fields):
    """Each looks like it in all but one thing."""
    assert [] == of(RULE, shot(120, **fields))
