import pytest

from ackscope.findings import exit_code
from ackscope.snapshot import Overview, Part
from diagnosis.engine import diagnose
from diagnosis.rules import RULES as ALL_RULES
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import (
    ALARM,
    WALL,
    channel,
    connection,
    consumer,
    film,
    found,
    only,
    queue,
    snapshot,
    stats,
    text,
)
from tests.unit.diagnosis.pictures import look as look_with

FEW = ("pub-nacked-overflow", "memory-alarm", "stuck-consumer", "requeue-loop", "no-consumer")
RULES = tuple(rule for rule in ALL_RULES if rule.name in FEW)
"""The engine works the same for five rules as for ninety; the rules have tests of their own."""

COUNTING = {rule.name for rule in RULES if rule.compares_counters}


def look(window):
    """Return the diagnosis by these few rules."""
    return look_with(window, rules=RULES)


def stuck(t, name="orders", ready=50):
    """A queue whose consumer never acknowledged, with its consumer and channel."""
    counters = stats(publish=int(ready + 10 + t), deliver=10)
    return (
        queue(name, messages_ready=int(ready + t), messages_unacked=10, stats=counters),
        consumer(name, channel_name=f"{name} (1)", connection_name=name, tag=name),
        channel(f"{name} (1)", messages_unacked=10, idle_since=WALL, stats=stats(deliver=10)),
    )


def full(t):
    """Return a full queue that refuses publishes."""
    limits = {"x-max-length": 10, "x-overflow": "reject-publish"}
    return queue("full", messages_ready=10, arguments=limits, stats=stats(publish=int(9 * t)))


def lonely(t):
    """A queue without consumers that grows."""
    return queue("lonely", consumers=0, messages_ready=int(10 + t), stats=stats(publish=int(10 + t)))


def troubled(t):
    """Return a cluster with all these faults at once."""
    small, large = stuck(t, "small"), stuck(t, "large", ready=5000)
    return {
        "health": (ALARM,),
        "queues": (lonely(t), small[0], large[0], full(t)),
        "consumers": (small[1], large[1]),
        "channels": (small[2], large[2]),
        "connections": (connection("small", client_name="small"), connection("large", client_name="large")),
    }


def test_a_healthy_cluster_has_no_findings_and_every_rule_was_asked():
    """No finding and nothing inconclusive gives exit code 0."""
    verdict = look(film(lambda t: {"queues": (queue(stats=stats(publish=int(t), ack=int(t))),)}, until=60))

    assert ((), (), tuple(rule.name for rule in RULES)) == (verdict.findings, verdict.inconclusive, verdict.checked)
    assert 0 == exit_code([verdict])


def test_findings_are_ranked_by_what_messages_suffer():
    """Loss comes first, then stopped (critical before warning, larger queues first)."""
    expected = [
        ("pub-nacked-overflow", "critical", "full"),
        ("memory-alarm", "critical", "rabbit@one"),
        ("stuck-consumer", "critical", "large"),
        ("stuck-consumer", "critical", "small"),
        ("no-consumer", "warning", "lonely"),
    ]

    assert expected == found(look(film(troubled, until=200)))


def test_a_mere_risk_comes_last():
    """A full queue to which nobody publishes loses nothing yet."""

    def frame(t):
        limits = {"x-max-length": 10, "x-overflow": "reject-publish"}
        return {"queues": (queue("quiet", messages_ready=10, arguments=limits), lonely(t))}

    assert ["lonely", "quiet"] == [name for _, _, name in found(look(film(frame, until=200)))]


def test_a_lasting_finding_keeps_the_earliest_since():
    """The window forgets when it began; the previous result does not."""
    first = look(film(lambda t: {"queues": (lonely(t),)}, until=200))
    window = film(lambda t: {"queues": (lonely(t),)}, until=2000)

    again = only(look(window))
    carried = diagnose(window, (), window.latest.taken, Thresholds(), previous=first, rules=RULES)

    assert again.since > first.findings[0].since
    assert first.findings[0].since == carried.findings[0].since


def test_before_the_first_poll_nothing_can_be_reported():
    """Every rule is inconclusive with what it lacks; the exit code is 3."""
    verdict = look(Window.empty("shop"))

    assert {rule.name for rule in RULES} == {gap.rule for gap in verdict.inconclusive}
    assert 3 == exit_code([verdict])


def test_one_reading_is_not_enough_to_compare():
    """Counters need two readings to be compared; the alarm needs one reading only."""
    verdict = look(film(lambda _: {"queues": (queue(),)}, until=0))

    assert COUNTING == {gap.rule for gap in verdict.inconclusive}
    assert {"read_once"} == {each.reason for each in verdict.inconclusive}


def test_old_findings_are_not_repeated():
    """One minute after the last good reading the data is too old; the rules are inconclusive and say why."""
    window = film(troubled, until=200)
    last = window.latest
    for late in range(205, 300, 5):
        window = window.add(
            snapshot(
                late,
                **{
                    name: Part(value=part.value, at=part.at, error="timed out after 10 s")
                    for name, part in last.parts.items()
                },
            )
        )

    verdict = look(window)

    assert () == verdict.findings
    assert {rule.name for rule in RULES} == {gap.rule for gap in verdict.inconclusive}
    assert "queues last read 95 s ago (timed out after 10 s)" in text(verdict.inconclusive[0]).because


@pytest.mark.parametrize("family", ["queues", "consumers", "channels", "overview"])
def test_a_part_that_was_never_read_is_named(family):
    """The rules that need it are inconclusive, and one that judges a part without it; the others work."""
    partly = {"consumers": {"requeue-loop", "stuck-consumer"}, "channels": {"stuck-consumer"}}.get(family, set())
    verdict = look(film(lambda t: {**troubled(t), family: Part(error="refused")}, until=60))

    blind = {gap.rule for gap in verdict.inconclusive if f"{family} never read (refused)" in text(gap).because}

    assert {rule.name for rule in RULES if family in rule.needs} | partly == blind
    assert "memory-alarm" in [finding.rule for finding in verdict.findings]


@pytest.mark.parametrize(
    "overview",
    [
        Overview(rabbitmq_version="4.3.6", statistics=False, rates_mode="basic"),
        Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="none"),
    ],
    ids=["disable_stats", "rates_mode none"],
)
def test_without_counters_silence_is_not_mistaken_for_standstill(overview):
    """Without counters every consumer would look stuck."""
    verdict = look(film(lambda t: {**troubled(t), "health": (), "overview": overview}, until=200))

    assert () == verdict.findings
    assert {rule.name for rule in RULES} == {gap.rule for gap in verdict.inconclusive}


def test_queues_that_the_user_may_not_see_are_reported():
    """The API answers with an empty list, which looks healthy."""
    verdict = look(film(lambda _: {"hidden_queues": 7}, until=10))

    assert COUNTING == {gap.rule for gap in verdict.inconclusive}
    assert "rabbitmqctl set_permissions -p VHOST USER '' '' ''" in text(verdict.inconclusive[0]).needs


def test_a_queue_that_just_came_is_not_hidden():
    """The overview and the list are read at slightly different times."""
    verdict = look(film(lambda t: {"hidden_queues": 1 if t == 10 else 0}, until=10))

    assert () == verdict.inconclusive


@pytest.mark.parametrize("state", ["running", None])
def test_a_queue_that_is_new_has_no_counts_yet(state):
    """It was not in the reading before. A client that declares queues all the time must not hide everything."""

    def frame(t):
        new = queue(f"reply-{t}", messages_ready=None, messages_unacked=None, consumers=None, state=state)
        return {"queues": (queue(), new)}

    assert () == look(film(frame, until=20)).inconclusive


@pytest.mark.parametrize(("state", "until"), [("down", 5), (None, 20)], ids=["node is down", "for long"])
def test_a_queue_without_counts_is_reported(state, until):
    """A classic queue on a node that is down reports no counts; that does not mean healthy."""
    silent = queue("silent", messages_ready=None, messages_unacked=None, consumers=None, state=state)
    verdict = look(film(lambda _: {"queues": (silent,)}, until=until))

    assert COUNTING == {gap.rule for gap in verdict.inconclusive}
    assert "'silent' in vhost '/'" in text(verdict.inconclusive[0]).because


def test_a_new_queue_without_counts_is_given_time():
    """A quorum queue reports its counts about 10 s after it was declared, and has no state until then."""
    new = queue("new", type="quorum", messages_ready=None, messages_unacked=None, consumers=None, state=None)

    assert () == look(film(lambda _: {"queues": (new,)}, until=10)).inconclusive
