"""Consumers of a broker without statistics: only the figures of their queues are known."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, Involved, QueueRef, flat
from ackscope.second_source import MetricsReading, NativeTotals, QueueTypeTotals
from ackscope.snapshot import Overview, Part
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import ALARM, look, moment, queue, snapshot, stats, text

JOINED = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes"), native=NativeTotals())


def seen(of, *, until=150, version="4.3.6", reading=JOINED, native=lambda _: NativeTotals(), **parts):
    """Return what is found in a film of queues, by second, of a broker that lists no clients."""
    window = Window.empty("shop")
    for seconds in range(0, until, 5):
        overview = Overview(
            rabbitmq_version=version, statistics=False, rates_mode="basic", stats=stats(publish=1000 + 10 * seconds)
        )
        taken = snapshot(seconds, overview=overview, queues=of(seconds), **parts)
        known = Part(value=replace(reading, native=native(seconds)), at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    return look(window)


def of_rule(result, rule="stuck-consumer"):
    """Return the findings of a rule, causes and consequences."""
    return [each for each in flat(result.findings) if each.rule == rule]


def flow(*, published, acked, held, redelivered=0, rest=0, name="parcels", **fields):
    """Return a queue by what came, was acknowledged and is held; `rest` left in another way."""
    counters = stats(
        publish=published, deliver=acked + held, deliver_get=acked + held, ack=acked, redeliver=redelivered
    )
    waiting = published - acked - held - rest
    return (queue(name=name, messages_ready=waiting, messages_unacked=held, stats=counters, **fields),)


def hung(t, *, at=60, rate=7, held=24, before=3, **fields):
    """Return a queue whose consumers work until second `at`, then hold their prefetch."""
    if t <= at:
        acked = 200 + rate * t
        return flow(published=acked + before, acked=acked, held=before, **fields)
    acked, published = 200 + rate * at, 200 + rate * t + before
    return flow(published=published, acked=acked, held=min(held, published - acked), **fields)


@pytest.mark.parametrize(("rate", "held", "consumers", "kind"), [(7, 24, 3, "quorum"), (40, 250, 1, "classic")])
def test_a_queue_that_is_stuck_is_named_without_its_clients(rate, held, consumers, kind):
    """With the number of its consumers, and steps that find the client."""
    film = lambda t: hung(t, rate=rate, held=held, consumers=consumers, type=kind)  # noqa: E731

    (finding,) = of_rule(seen(film))
    report = text(finding)

    assert ("critical", Certainty.LIKELY) == (finding.severity.value, finding.certainty)
    assert (consumers, held) == (finding.facts["consumers"], finding.facts["unacked"])
    assert Involved(queues=(QueueRef("/", "parcels"),)) == finding.involved
    assert "does not list its clients" in report.cause
    assert any("list_channels" in (step.command or "") for step in report.steps)
    assert not any("None" in step.text for step in report.steps)


def test_it_is_information_before():
    """A slow handler looks the same for a moment."""
    (finding,) = of_rule(seen(hung, until=85))

    assert ("info", Certainty.EARLY) == (finding.severity.value, finding.certainty)


def test_what_the_figures_do_not_tell_stays_inconclusive():
    """Such as some consumers that hang while others work."""
    result = seen(hung)

    assert ["no_client_lists"] == [gap.reason for gap in result.inconclusive if gap.rule == "stuck-consumer"]


@pytest.mark.parametrize(
    ("version", "reading"), [("3.10.8", JOINED), ("4.3.6", replace(JOINED, unread={"b:15692": "refused"}))]
)
def test_without_all_counters_nothing_is_judged(version, reading):
    """Before 4.0 queues are not counted; and a sum needs all nodes."""
    assert [] == of_rule(seen(hung, version=version, reading=reading))


def test_consumers_without_limit_that_never_stop_taking():
    """What they hold grows beyond anything that they held before."""

    def takes(t):
        if t <= 60:
            return flow(published=200 + 5 * t, acked=190 + 5 * t, held=10)
        return flow(published=200 + 5 * t, acked=490, held=5 * t - 290)

    assert ["critical"] == [each.severity.value for each in of_rule(seen(takes))]


def job_of(seconds, *, prefetch=1):
    """Return a film of a consumer that takes so long for one message, while more arrive."""

    def film(t):
        acked = 50 + int(t // seconds)
        return flow(published=acked + prefetch + 20 + t, acked=acked, held=prefetch)

    return film


def batch(t):
    """Collects 40 messages, acknowledges all of them, and so on; the publisher is paused from second 70 on."""
    published = 400 + 2 * min(t, 70)
    return flow(published=published, acked=published - published % 40, held=published % 40)


def large_batch(t):
    """The batch grows as large as before."""
    published = 400 + 5 * t
    return flow(published=published, acked=published - published % 300, held=published % 300)


def begun(t):
    """Messages waited, and a consumer has just come."""
    if t < 135:
        return flow(published=300 + t, acked=0, held=0, consumers=0)
    return flow(published=300 + t, acked=0, held=30)


def native(t):
    """An AMQP 1.0 consumer takes from a queue that once had another one; it is not counted."""
    counters = stats(publish=900 + 5 * t, deliver=700, deliver_get=700, ack=500)
    return (queue(name="parcels", messages_ready=300, messages_unacked=100, stats=counters),)


def looping(t):
    """Messages come back."""
    return flow(published=900 + 5 * t, acked=600, held=20, redelivered=20 * t)


def rejecting(t):
    """Messages are rejected and gone: what is held does not grow with what is delivered."""
    counters = stats(publish=900 + 5 * t, deliver=700 + 5 * t, deliver_get=700 + 5 * t, ack=600)
    return (queue(name="parcels", messages_ready=40, messages_unacked=10, stats=counters),)


def mqtt(t):
    """Nothing is counted."""
    counters = stats(publish=900 + 5 * t)
    return (queue(name="mqtt-subscription-van7qos1", messages_ready=5 * t, messages_unacked=10, stats=counters),)


@pytest.mark.parametrize("film", [batch, large_batch, begun, native, looping, rejecting, mqtt])
def test_what_looks_like_it_is_not_accused(film):
    """Whatever the moment."""
    accused = lambda seconds: NativeTotals(types={"classic": QueueTypeTotals(delivered=50 * seconds)})  # noqa: E731

    for until in range(60, 156, 15):
        assert [] == of_rule(seen(film, until=until, native=accused))


@pytest.mark.parametrize(("seconds", "prefetch"), [(50, 1), (12, 30)])
def test_long_jobs_are_not_accused(seconds, prefetch):
    """One message at a time, or acknowledged one after the other."""
    for until in range(60, 156, 15):
        assert [] == of_rule(seen(job_of(seconds, prefetch=prefetch), until=until))


def test_publishers_and_consumers_that_pause_together():
    """Nothing waits, and nothing comes: the client may keep what it has until more arrives."""
    assert [] == of_rule(seen(lambda t: hung(min(t, 60), before=9), until=300))


def test_an_alarm_blocks_acknowledgements():
    """Of clients that publish on the same connection."""
    assert [] == of_rule(seen(hung, health=(ALARM,)))


def test_messages_that_expire_hide_nothing():
    """A queue that is stuck may lose messages; nobody else took them if no AMQP 1.0 client took any."""
    film = lambda t: hung(t, rest=0 if t < 80 else min(4 * (t - 80), 60))  # noqa: E731

    assert ["stuck-consumer"] == [each.rule for each in of_rule(seen(film))]


def test_a_single_message_for_each_may_be_a_long_job():
    """A warning at most, after a minute."""
    film = lambda t: hung(t, held=2, before=2, consumers=2)  # noqa: E731

    assert [] == of_rule(seen(film, until=110))
    assert ["warning"] == [each.severity.value for each in of_rule(seen(film))]


def lagging(t, *, came=12.0, acked=4.0, held=8, **fields):
    """Return a queue that grows while its consumers acknowledge."""
    done = int(100 + acked * t)
    return flow(published=int(150 + came * t), acked=done, held=held, **fields)


@pytest.mark.parametrize(("came", "acked", "held", "consumers"), [(12.0, 4.0, 8, 2), (300.0, 200.0, 900, 1)])
def test_a_queue_whose_consumers_are_too_slow(came, acked, held, consumers):
    """With the time for one message, by consumer; nobody is called stuck."""
    result = seen(
        lambda t: lagging(t, came=came, acked=acked, held=held, consumers=consumers, type="quorum"), until=180
    )
    ((finding,), stopped) = of_rule(result, "slow-consumer"), of_rule(result)
    report = text(finding)

    assert ("warning", []) == (finding.severity.value, stopped)
    assert pytest.approx(consumers / acked, rel=0.05) == finding.facts["seconds_per_message"]
    assert "does not list its clients" in report.cause
    assert any("list_channels" in (step.command or "") for step in report.steps)


def steady(t):
    """What arrives is acknowledged, behind a backlog."""
    return flow(published=900 + 10 * t, acked=500 + 10 * t, held=20)


def burst(t):
    """Arrives at once, and shrinks."""
    return (
        flow(published=500 + 5 * t + 400 * (t >= 60), acked=480 + 7 * t, held=10)
        if t
        else flow(published=500, acked=480, held=10)
    )


def small_prefetch(t):
    """Each message is held for a few milliseconds only."""
    return lagging(t, came=300.0, acked=250.0, held=1)


@pytest.mark.parametrize("film", [steady, burst, small_prefetch])
def test_what_looks_slow_is_not_accused(film):
    """At any moment."""
    for until in range(60, 181, 30):
        assert [] == of_rule(seen(film, until=until), "slow-consumer")
