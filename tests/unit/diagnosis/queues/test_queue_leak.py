import pytest

from ackscope.snapshot import Overview
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, snapshot, stats, text
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
    assert "rabbitmqctl set_vhost_limits -p / '{\"max-queues\":210}'" == commands[-1]


@pytest.mark.parametrize(("expires", "rate", "number"), [(86_400_000, 2.0, "172,800"), (1_800_000, 5.0, "9,000")])
def test_queues_that_expire_stay_at_a_number(expires, rate, number):
    """Each is deleted after its time without use, so as many exist as are declared in that time."""

    def frame(t):
        made = leaking(t, rate=rate)
        return {**made, "queues": tuple(queue(each.name, arguments={"x-expires": expires}) for each in made["queues"])}

    finding = one(RULE, look(film(frame, until=30)))

    assert expires / 1000 == finding.facts["new"]["expires_seconds"]
    assert f"at this rate about {number} exist by then" in text(finding).cause


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


def late(t, *, rate, quiet=3600, steps=0, base=7):
    """A quiet hour, then many queues at once (or none), and this many more each second."""
    more = steps + int(rate * (t - quiet)) if t >= quiet else 0
    return {"overview": overview(base + more), "queues": ()}


def after_an_hour(seconds, **fields):
    """The finding this many seconds after the quiet hour; None if there is none."""
    result = look(film(lambda t: late(t, **fields), until=3600 + seconds, every=20.0))
    found = of(RULE, result)
    return one(RULE, result) if found else None


@pytest.mark.parametrize("minutes", [1, 6])
def test_a_deployment_after_a_quiet_hour_is_no_warning(minutes):
    """116 queues in some minutes are two a minute of the hour, and in no other minute there are new ones."""

    def frame(t):
        more = min(116, int(116 / (60 * minutes) * max(0.0, t - 3600)))
        return {"overview": overview(7 + more), "queues": ()}

    during = [of(RULE, look(film(frame, until=3600 + t, every=20.0))) for t in range(40, 60 * minutes + 20, 40)]
    after = [of(RULE, look(film(frame, until=3600 + t, every=20.0))) for t in range(60 * minutes + 160, 2000, 200)]

    assert {"info"} >= {severity for found in during for severity, _ in found}
    assert [] == [each for found in after for each in found]


def test_queues_that_expire_as_fast_as_they_come_are_no_leak():
    """Three a second, each for 15 s, beside 30 of sessions."""

    def frame(t):
        return {"overview": overview(7 + (30 + min(45, int(3 * (t - 3600))) if t >= 3600 else 0)), "queues": ()}

    assert [] == [
        each for t in range(40, 2000, 150) for each in of(RULE, look(film(frame, until=3600 + t, every=20.0)))
    ]


def test_a_leak_after_a_quiet_hour_is_named_within_minutes_and_counts_from_its_beginning():
    """Twelve a minute."""
    early, lasting = after_an_hour(360, rate=0.2), after_an_hour(1860, rate=0.2)

    assert ("info", "early") == (early.severity, early.certainty)
    assert "warning" == lasting.severity
    for finding, seconds in ((early, 360), (lasting, 1860)):
        assert abs(finding.facts["over_seconds"] - seconds) <= 60
        assert abs(finding.facts["growth_rate"] - 0.2) <= 0.02


def test_a_fast_leak_after_a_quiet_hour_is_a_warning_after_three_minutes():
    """Two a second."""
    fast = film(lambda t: late(t, rate=2.0), until=3600)
    for t in range(3605, 3800, 5):
        fast = fast.add(snapshot(float(t), **late(t, rate=2.0)))

    assert [("warning", "shop")] == of(RULE, look(fast))
    assert 1.7 <= one(RULE, look(fast)).facts["growth_rate"] <= 2.0


def test_a_deployment_hides_no_leak_that_follows_it():
    """A hundred queues at once, then two a minute; the rate is about that of the leak."""
    finding = after_an_hour(2000, rate=1 / 30, steps=100, quiet=600)

    assert "warning" == finding.severity
    assert 0.9 / 30 <= finding.facts["growth_rate"] <= 1.6 / 30


def test_very_many_queues_are_information():
    """Very many queues are costly even if they are idle."""
    assert [("info", "shop")] == of(RULE, shot(30, rate=0.0, base=20_000))


def test_totals_that_are_absent_are_no_growth():
    """Absent is not zero."""

    def blind(t):
        return {**leaking(t), "overview": overview(None if t < 20 else 500)}

    assert [] == of(RULE, look(film(blind, until=30)))
