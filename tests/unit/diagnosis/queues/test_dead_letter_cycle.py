from dataclasses import replace

import pytest

from diagnosis.rules.queues.dead_letter_cycle import cycle_path
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, text
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


def overflowing(t, *, name="delay", ready=30, ttl=20_000, limit=30, where="argument", rate=140.0, **delay):
    """A loop through a delay queue that pushes out its oldest message, and 7 messages a second that succeed."""
    settings = {} if limit is None else {"max-length": limit}
    arguments = {**BACK, "x-message-ttl": ttl, **delay}
    arguments |= {f"x-{key}": value for key, value in settings.items() if where == "argument"}
    out = {**OUT, "x-dead-letter-routing-key": name}
    work = flowing(t, published=9.0, acked=7.0, rejected=rate, arguments=out)
    policy = {"policy": "limits", "effective_policy": settings} if where == "policy" else {}
    return frame(work, queue(name, consumers=0, messages_ready=ready, arguments=arguments, **policy))


@pytest.mark.parametrize(
    "fields",
    [{}, {"name": "geo.later", "ttl": 5000, "limit": 12, "ready": 12, "rate": 300.0}, {"ready": 29}],
    ids=["full", "other numbers", "nearly full"],
)
def test_a_delay_queue_at_its_limit_does_not_delay(fields):
    """Each message that comes pushes out the oldest one; the TTL never applies."""
    finding = one(RULE, look(film(lambda t: overflowing(t, **fields), until=80)))
    full = finding.facts["full"]

    assert (fields.get("name", "delay"), fields.get("ttl", 20_000) / 1000) == (
        full["queue"]["name"],
        full["ttl_seconds"],
    )
    assert full["wait_seconds"] < 0.5
    assert "at its length limit" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [
        {"ready": 20},
        {"limit": None},
        {"x-overflow": "reject-publish"},
        {"ttl": 200, "ready": 28},
    ],
    ids=["room left", "no limit", "refuses what comes", "a TTL that fits"],
)
def test_other_delay_queues_delay(fields):
    """The loop is reported all the same."""
    finding = one(RULE, look(film(lambda t: overflowing(t, **fields), until=80)))

    assert finding.facts["full"] is None
    assert "length limit" not in text(finding).cause


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, [("warning", "orders")]), ({"ready": 20}, []), ({"rate": 6.0}, [])],
    ids=["at its limit", "room left", "most are acknowledged"],
)
def test_good_messages_do_not_hide_a_loop_through_a_full_queue(fields, expected):
    """A fifth of the deliveries is acknowledged."""
    assert expected == of(RULE, look(film(lambda t: overflowing(t, **{"rate": 28.0, **fields}), until=80)))


def test_how_long_the_delay_queue_is_full_does_not_depend_on_the_rejections():
    """Few of the latest rejections are proven not to be requeues; the queue has been at its limit for longer."""

    def requeued(t):
        made = overflowing(t)
        work, delay = made["queues"]
        counters = replace(work.stats, redeliver=int(139.5 * t))
        return {**made, "queues": (replace(work, stats=counters), delay)}

    assert 30 == one(RULE, look(film(requeued, until=40))).facts["full"]["max_length"]


def test_the_limit_is_raised_where_it_is_set():
    """A policy can be changed, an argument cannot; stopping the consumer has a price."""
    by_policy, by_argument = (
        text(one(RULE, look(film(lambda t, where=where: overflowing(t, where=where), until=80)))).steps
        for where in ("policy", "argument")
    )

    assert any("set_policy" in (step.command or "") and '"max-length": ' in step.command for step in by_policy)
    assert not any("set_policy" in (step.command or "") for step in by_argument)
    assert any("Declare a new delay queue" in step.text for step in by_argument)
    assert any("also stops what it handles well (7/s)" in step.text for step in by_argument)
