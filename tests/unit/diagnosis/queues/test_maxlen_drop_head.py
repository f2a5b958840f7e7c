import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, told
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "maxlen-drop-head"
LIMITED = {"x-max-length": 10}


def dropping(t, **fields):
    """A queue at its limit of 10: 8 a second come, half a message a second is taken."""
    return flowing(t, **{"taken": 0.5, "ready": 10, "unacked": 1, "arguments": LIMITED, **fields})


def shot(until, **fields):
    """The verdict on that queue after so many seconds."""
    return look(film(lambda t: frame(dropping(t, **fields)), until=until))


def test_it_is_told_early_and_is_critical_after_a_minute():
    """A burst ends sooner."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("info", "orders")] == of(RULE, shot(55))
    assert [("critical", "orders")] == of(RULE, shot(75))


def test_the_finding_says_how_many_are_gone_and_how_to_stop_it():
    """With the exact command."""
    finding = one(RULE, shot(75))

    assert "full (10 of 10 messages) and drops its oldest messages: at least" in finding.summary
    assert "overflow" in finding.cause
    assert """'{"max-length": 10, "overflow": "reject-publish"}'""" in told(finding)


def test_two_looks_find_it():
    """As `ackscope diagnose` does."""
    window = film(lambda t: frame(dropping(t)), until=6, every=6)

    assert [("critical", "orders")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


def test_the_time_when_it_was_still_filling_does_not_count():
    """It lost messages within the interval in which it became full."""
    window = film(lambda t: frame(dropping(t, ready=min(10, int(4 * t)), unacked=0)), until=30)

    assert "in 25 s;" in one(RULE, look(window)).summary


def test_a_limit_in_bytes_counts_like_one_in_messages():
    """And so does one by policy."""
    limited = {"arguments": {}, "effective_policy": {"max-length-bytes": 1000}, "message_bytes_ready": 980}

    assert "980 B of 1000 B" in one(RULE, shot(75, **limited)).summary


def test_what_is_written_down_is_no_more_than_a_warning():
    """Somebody chose drop-head."""
    limited = {**LIMITED, "x-overflow": "drop-head"}

    assert [("warning", "orders")] == of(RULE, shot(120, arguments=limited))


def test_without_consumers_it_may_keep_the_newest_few_on_purpose():
    """A ring buffer is a fact, and no alarm."""
    assert [("info", "orders")] == of(RULE, shot(300, consumers=0, taken=0.0, unacked=0))


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {**LIMITED, "x-overflow": "reject-publish"}},
        {"arguments": {}},
        {"ready": 3},
        {"taken": 8.0},
        {"published": 0.0},
        {"type": "stream"},
    ],
    ids=["refuses", "no limit", "not full", "keeps up", "nothing comes", "stream"],
)
def test_other_queues_are_left_alone(fields):
    """Each looks like it in all but one thing."""
    assert [] == of(RULE, shot(120, **fields))


def test_what_is_dead_lettered_is_not_lost_and_that_is_said():
    """It is set aside, with the reason."""
    verdict = shot(120, arguments={**LIMITED, "x-dead-letter-exchange": "kept"})

    assert [] == of(RULE, verdict)
    assert ["it dead-letters to 'kept'"] == [
        each.because.split(": ")[1] for each in verdict.suppressed if each.rule == RULE
    ]
