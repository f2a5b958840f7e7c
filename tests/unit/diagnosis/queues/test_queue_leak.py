from ackscope.snapshot import Overview
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import of, one

RULE = "queue-leak"


def overview(number):
    """The totals of a broker with this many queues."""
    return Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", queues=number, stats=stats())


def leaking(t, *, rate=2.0, base=50, most=10**9):
    """This many more queues each second; their names begin alike."""
    more = min(int(rate * t), most)
    return {"overview": overview(base + more), "queues": tuple(queue(f"tmp.{n:04d}") for n in range(more))}


def shot(until, *, every=5.0, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: leaking(t, **fields), until=until, every=every))


def test_a_fast_leak_is_information_first_and_a_warning_after_three_minutes():
    """A deployment declares all its queues within seconds."""
    assert [] == of(RULE, shot(15))
    assert [("info", "shop")] == of(RULE, shot(30))
    assert [("warning", "shop")] == of(RULE, shot(200))


def test_the_finding_says_what_the_new_queues_have_in_common():
    """That identifies the client."""
    finding = one(RULE, shot(30))
    new = finding.facts["new"]

    assert (["/"], "tmp.005", 0, False) == tuple(new[key] for key in ("vhosts", "prefix", "private", "expire"))
    assert (60, 2.0) == (finding.facts["gained"], finding.facts["growth_rate"])
    assert "tmp.0050" in [each.name for each in finding.involved.queues]


def test_the_commands_name_the_vhost_and_the_prefix():
    """The commands can be pasted unchanged."""
    commands = [step.command or "" for step in text(one(RULE, shot(30))).steps]

    assert r"rabbitmqctl set_policy -p / expire-unused '^tmp\.005'" in commands[1]
    assert "rabbitmqctl set_vhost_limits -p / '{\"max-queues\":210}'" == commands[2]


def test_a_deployment_is_over_soon():
    """Fifty queues in ten seconds, and then no more."""
    assert [] == of(RULE, shot(60, rate=5.0, most=50))


def test_a_few_new_queues_are_no_leak():
    """The probes declare some queues of their own when they start."""
    few = look(film(lambda t: leaking(t, rate=0.6), until=6, every=6), thresholds=Thresholds.as_if_lasting())
    many = look(film(leaking, until=6, every=6), thresholds=Thresholds.as_if_lasting())

    assert [] == of(RULE, few)
    assert [("info", "shop")] == of(RULE, many)


def test_a_slow_leak_is_found_over_half_an_hour():
    """Three a minute."""
    assert [] == of(RULE, shot(1200, rate=0.05, every=30.0))
    assert [("warning", "shop")] == of(RULE, shot(1900, rate=0.05, every=30.0))


def test_very_many_queues_are_information():
    """Very many queues are costly even if they are idle."""
    assert [("info", "shop")] == of(RULE, shot(30, rate=0.0, base=20_000))


def test_totals_that_are_absent_are_no_growth():
    """Absent is not zero."""

    def blind(t):
        return {**leaking(t), "overview": overview(None if t < 20 else 500)}

    assert [] == of(RULE, look(film(blind, until=30)))
