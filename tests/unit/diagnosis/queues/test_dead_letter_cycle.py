import pytest

from diagnosis.rules.queues.dead_letter_cycle import cycle_path
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dead-letter-cycle"
OUT = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "delay"}
BACK = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}


def picture(t, *, back=None, **fields):
    """Return a film of three messages that are rejected and come back every second."""
    work = flowing(t, **{"published": 0.0, "rejected": 3.0, "arguments": OUT, **fields})
    return frame(work, queue("delay", consumers=0, messages_ready=3, arguments=BACK if back is None else back))


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_information_first_and_a_warning_after_a_minute():
    """A retry that ends looks the same at first."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(80))


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(picture, until=6, every=6)

    assert [("warning", "orders")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_finding_has_the_path():
    """From queue to queue, and back; the last queue before the end is the one to purge."""
    facts = one(RULE, shot(20)).facts

    assert (["orders", "delay", "orders"], "delay") == (facts["path"], facts["last_queue"]["name"])
    assert (60, 0, 3.0) == (facts["rejected"], facts["acked"], facts["reject_rate"])


@pytest.mark.parametrize(
    "fields",
    [
        {"published": 8.0, "acked": 7.6, "rejected": 0.4},
        {"back": {}},
        {"published": 8.0, "rejected": 8.0},
        {"rejected": 0.0},
    ],
    ids=["a retry that succeeds", "no path back", "each is rejected once", "nothing is rejected"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(120, **fields))


def test_cycles_are_found_however_long():
    """A path that only leads into a cycle is none."""
    a, b, c = ("/", "a"), ("/", "b"), ("/", "c")

    assert (a, b, c) == cycle_path(a, {a: frozenset({b}), b: frozenset({c}), c: frozenset({a})})
    assert () == cycle_path(a, {a: frozenset({b}), b: frozenset({c}), c: frozenset({b})})
    assert (a,) == cycle_path(a, {a: frozenset({a})})
