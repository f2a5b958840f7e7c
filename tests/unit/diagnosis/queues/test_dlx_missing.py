import pytest

from ackscope.snapshot import Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, moment, queue, told
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "dlx-missing"
GONE = {"x-dead-letter-exchange": "gone"}


def shot(until, *, exchanges=(), bindings=(), **fields):
    """The verdict on a queue of which half is rejected."""
    made = {"taken": 4.0, "rejected": 4.0, "arguments": GONE, **fields}
    return look(film(lambda t: frame(flowing(t, **made), exchanges=exchanges, bindings=bindings), until=until))


def test_what_is_dropped_now_is_critical_after_a_minute():
    """A deployment may declare the exchange a little late."""
    assert [] == of(RULE, shot(10))
    assert [("warning", "gone")] == of(RULE, shot(20))
    assert [("critical", "gone")] == of(RULE, shot(65))


def test_a_way_that_is_missing_and_not_needed_yet_is_a_warning():
    """Nothing is rejected, expires or overflows."""
    idle = {"taken": 8.0, "rejected": 0.0}

    assert [("info", "gone")] == of(RULE, shot(20, **idle))
    assert [("warning", "gone")] == of(RULE, shot(65, **idle))


def test_the_finding_says_what_is_missing_and_makes_it():
    """Queue, exchange and binding, as commands."""
    finding = one(RULE, shot(65))

    assert "does not exist" in finding.cause
    assert "declare exchange name=gone type=fanout durable=true" in told(finding)
    assert "declare binding source=gone destination=gone.dead" in told(finding)


def test_two_looks_find_it():
    """As `ackscope diagnose` does; what is dropped meanwhile is within what the figures lag."""
    window = film(lambda t: frame(flowing(t, taken=4.0, rejected=4.0, arguments=GONE)), until=6, every=6)

    assert [("warning", "gone")] == of(RULE, look(window, thresholds=Thresholds.one_shot()))


@pytest.mark.parametrize(
    ("arguments", "bindings", "words"),
    [
        (GONE, (), "has no binding that leads to a queue"),
        ({**GONE, "x-dead-letter-routing-key": "a"}, (binding("gone", "x", "b"),), "takes the routing key 'a'"),
    ],
    ids=["no binding", "wrong key"],
)
def test_an_exchange_that_leads_nowhere_is_as_bad(arguments, bindings, words):
    """The cause says which it is."""
    verdict = shot(65, arguments=arguments, exchanges=(exchange("gone", "direct"),), bindings=bindings)

    assert words in one(RULE, verdict).cause


def test_a_queue_that_is_named_and_not_there():
    """By way of the default exchange."""
    verdict = shot(65, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"})

    assert "there is no such queue" in one(RULE, verdict).cause


def test_bindings_that_were_read_before_the_queue_came_prove_nothing():
    """They are read once a minute: queue, exchange and binding may have been declared together since."""

    def late(t):
        way = {"exchanges": (exchange("gone"),)}
        if t < 30:
            return frame(**way)
        made = frame(flowing(t, taken=8.0, arguments=GONE), **way)
        return {**made, "bindings": Part(value=made["bindings"], at=moment(29.0), seconds=0.1)}

    assert [] == of(RULE, look(film(late, until=80)))


def test_many_queues_with_one_exchange_are_one_finding():
    """The cause is one."""
    window = film(lambda t: frame(*(flowing(t, f"q{n}", taken=8.0, arguments=GONE) for n in range(9))), until=65)

    assert [("warning", "gone")] == of(RULE, look(window))


@pytest.mark.parametrize(
    ("arguments", "exchanges", "bindings"),
    [
        ({}, (), ()),
        (GONE, (exchange("gone"),), (binding("gone", "bin"),)),
        (GONE, (exchange("gone", "headers"),), (binding("gone", "bin"),)),
        ({"x-dead-letter-exchange": ""}, (), ()),
        ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}, (), ()),
    ],
    ids=["no dead letters", "a way", "by headers", "own name", "itself"],
)
def test_what_has_a_way_or_cannot_be_told_is_left_alone(arguments, exchanges, bindings):
    """No guess."""
    assert [] == of(RULE, shot(120, arguments=arguments, exchanges=exchanges, bindings=bindings))


def test_a_quorum_queue_that_keeps_its_dead_letters_is_critical_after_two_minutes():
    """They wait for a way, and nothing is dropped."""

    def waiting(t):
        kept = queue(type="quorum", arguments=GONE, messages_dlx=20, messages_ready=0, messages=20)
        return frame(kept)

    assert [("warning", "gone")] == of(RULE, look(film(waiting, until=100)))
    assert [("critical", "gone")] == of(RULE, look(film(waiting, until=130)))
    assert "20 messages kept back" in one(RULE, look(film(waiting, until=130))).summary


def test_without_bindings_it_says_that_it_cannot_tell():
    """But an exchange that is not there needs no bindings."""

    def blind(t):
        made = frame(flowing(t, arguments={"x-dead-letter-exchange": "there"}), exchanges=(exchange("there"),))
        return {**made, "bindings": Part(error="timed out")}

    verdict = look(film(blind, until=65))

    assert [] == of(RULE, verdict)
    assert ["bindings were not read"] == [gap.because.split(",")[0] for gap in verdict.inconclusive if gap.rule == RULE]
