import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "ttl-expiry-loss"
TTL = {"x-message-ttl": 500}


def expiring(t, **fields):
    """A queue with a TTL of 500 ms: 8 messages per second are published, 2 are acknowledged."""
    return flowing(t, **{"acked": 2.0, "ready": 3, "unacked": 1, "arguments": TTL, **fields})


def shot(until, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(expiring(t, **fields)), until=until))


def test_it_is_information_first_and_a_warning_after_five_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(5))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(330))


def test_the_finding_has_the_ttl_and_the_balance():
    """240 of 320 messages expired."""
    facts = one(RULE, shot(40)).facts

    assert (240, 320, 80) == (facts["lost"], facts["published"], facts["consumed"])
    assert (0.5, True, None) == (facts["ttl_seconds"], facts["ttl_is_argument"], facts["dead_letter_exchange"])


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(lambda t: frame(expiring(t)), until=6, every=6)

    assert [("warning", "orders")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


def test_a_ttl_by_policy_can_be_changed_at_once():
    """Ten times as long, to gain time."""
    by_policy = {"arguments": {}, "effective_policy": {"message-ttl": 500}, "policy": "short"}

    step = text(one(RULE, shot(40, **by_policy))).steps[1]

    assert """'{"message-ttl": 5000}'""" in (step.command or "")
    assert "replaces policy 'short'" in step.text


def test_without_consumers_it_may_hold_what_is_recent_on_purpose():
    """It is information, not an alarm."""
    assert [("info", "orders")] == of(RULE, shot(400, consumers=0, acked=0.0, unacked=0))


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {}},
        {"acked": 8.0},
        {"acked": 2.0, "rejected": 6.0},
        {"exclusive": True},
        {"auto_delete": True},
        {"consumers": 0, "acked": 0.0, "arguments": {**TTL, "x-dead-letter-exchange": "work"}},
        {"arguments": {**TTL, "x-max-length": 3}},
    ],
    ids=["no TTL", "keeps up", "rejected", "private", "auto-delete", "delay queue", "at its length limit"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(120, **fields))
