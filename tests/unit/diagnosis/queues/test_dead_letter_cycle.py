import pytest

from diagnosis.rules.queues.dead_letter_cycle import circle
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dead-letter-cycle"
OUT = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "delay"}
BACK = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}


def picture(t, *, back=None, **fields):
    """Three messages that are rejected and come back each second."""
    work = flowing(t, **{"published": 0.0, "rejected": 3.0, "arguments": OUT, **fields})
    return frame(work, queue("delay", consumers=0, messages_ready=3, arguments=BACK if back is None else back))


def shot(until, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_told_early_and_is_a_warning_after_a_minute():
    """A retry that ends looks the same at first."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(80))


def test_two_looks_find_it():
    """As `ackscope diagnose` does."""
    window = film(picture, until=6, every=6)

    assert [("warning", "orders")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


def test_the_finding_tells_the_way():
    """From queue to queue, and back."""
    assert "'orders' -> 'delay' -> 'orders'" in one(RULE, shot(20)).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"published": 8.0, "taken": 7.6, "rejected": 0.4},
        {"back": {}},
        {"published": 8.0, "rejected": 8.0},
        {"rejected": 0.0},
    ],
    ids=["a retry that succeeds", "no way back", "each is rejected once", "nothing is rejected"],
)
def test_other_queues_are_left_alone(fields):
    """Each looks like it in all but one thing."""
    assert [] == of(RULE, shot(120, **fields))


def test_circles_are_found_however_long():
    """And ways that only pass by a circle are none."""
    a, b, c = ("/", "a"), ("/", "b"), ("/", "c")

    assert (a, b, c) == circle(a, {a: frozenset({b}), b: frozenset({c}), c: frozenset({a})})
    assert () == circle(a, {a: frozenset({b}), b: frozenset({c}), c: frozenset({b})})
    assert (a,) == circle(a, {a: frozenset({a})})
