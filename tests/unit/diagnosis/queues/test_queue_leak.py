from ackscope.snapshot import Overview
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, told
from tests.unit.diagnosis.queues.films import of, one

RULE = "queue-leak"


def overview(number):
    """The totals of a broker with so many queues."""
    return Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", queues=number, stats=stats())


def leaking(t, *, rate=2.0, base=50, most=10**9):
    """So many more queues each second; their names begin alike."""
    more = min(int(rate * t), most)
    return {"overview": overview(base + more), "queues": tuple(queue(f"tmp.{n:04d}") for n in range(more))}


def shot(until, *, every=5.0, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: leaking(t, **fields), until=until, every=every))


def test_a_quick_leak_is_told_early_and_is_a_warning_after_three_minutes():
    """A deployment declares all its queues within seconds."""
    assert [] == of(RULE, shot(15))
    assert [("info", "shop")] == of(RULE, shot(30))
    assert [("warning", "shop")] == of(RULE, shot(200))


def test_the_finding_says_what_the_new_ones_have_in_common():
    """That names the client."""
    finding = one(RULE, shot(30))

    assert "their names begin with 'tmp.00" in finding.cause
    assert "none of them expires" in finding.cause
    assert "set_vhost_limits" in told(finding)


def test_a_deployment_is_over_soon():
    """Fifty queues in ten seconds, and then none."""
    assert [] == of(RULE, shot(60, rate=5.0, most=50))


def test_a_handful_is_no_leak():
    """The probes make some queues of their own when they begin."""
    few = look(film(lambda t: leaking(t, rate=0.6), until=6, every=6), thresholds=Thresholds.one_shot())
    many = look(film(leaking, until=6, every=6), thresholds=Thresholds.one_shot())

    assert [] == of(RULE, few)
    assert [("info", "shop")] == of(RULE, many)


def test_a_slow_leak_is_found_over_half_an_hour():
    """Three a minute."""
    assert [] == of(RULE, shot(1200, rate=0.05, every=30.0))
    assert [("warning", "shop")] == of(RULE, shot(1900, rate=0.05, every=30.0))


def test_very_many_queues_are_a_fact():
    """They cost, whatever they do."""
    assert [("info", "shop")] == of(RULE, shot(30, rate=0.0, base=20_000))


def test_totals_that_are_not_told_are_no_growth():
    """Absent is not zero."""

    def blind(t):
        return {**leaking(t), "overview": overview(None if t < 20 else 500)}

    assert [] == of(RULE, look(film(blind, until=30)))
