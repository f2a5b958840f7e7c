"""Consumers that come and go at a broker without statistics: only figures of queues and of the cluster are known."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, Involved, QueueRef, flat
from ackscope.second_source import MetricsReading, NativeTotals
from ackscope.snapshot import Overview, Part
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import WALL, look, moment, queue, snapshot, stats, text
from tests.unit.diagnosis.probing.heard import outcome, step

JOINED = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes"), native=NativeTotals())
QUEUE = Involved(queues=(QueueRef("/", "parcels"),))


def seen(of, *, until=150, every=5, churn=lambda _: 0.0, outcomes=()):
    """Return what is found in a film of a queue; `churn` tells how many connections came and went by a second."""
    window = Window.empty("shop")
    for seconds in range(0, until + 1, every):
        done = 40 + int(churn(seconds))
        names = [f"{what}_{word}" for what in ("connection", "channel") for word in ("created", "closed")]
        overview = Overview(
            rabbitmq_version="4.3.6", statistics=False, rates_mode="basic", connections=30, channels=30,
            churn=dict.fromkeys(names, done), stats=stats(publish=1000 + 10 * seconds),
        )  # fmt: skip
        taken = snapshot(seconds, overview=overview, queues=of(seconds))
        known = Part(value=JOINED, at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    return look(window, outcomes=outcomes)


def of_rule(result):
    """Return the findings of the rule, causes and consequences."""
    return [each for each in flat(result.findings) if each.rule == "consumer-flapping"]


def parcels(*, returned, acked=0, ready=200, held=10, consumers=1, polled=0, **fields):
    """Return a queue by what came back and what was acknowledged; `polled` of the deliveries were asked for."""
    delivered = 60 + int(returned) + int(acked)
    taken = {"deliver": delivered - int(polled), "get": int(polled), "deliver_get": delivered}
    counters = stats(publish=2000 + int(acked), ack=int(acked), redeliver=int(returned), **taken)
    return (
        queue("parcels", messages_ready=ready, messages_unacked=held, consumers=consumers, stats=counters, **fields),
    )


def lives(t, *, begin=40, every=2.0):
    """Return how many consumers have ended by a second."""
    return max(0.0, t - begin) // every


def crashing(t, *, every=2.0, prefetch=10, begin=40, dips=(), **fields):
    """Each life takes its prefetch and acknowledges nothing; some readings fall between two lives."""
    gone = t in dips
    return parcels(
        returned=prefetch * lives(t, begin=begin, every=every), held=0 if gone else prefetch, consumers=int(not gone),
        **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("every", "prefetch", "kind"), [(2.0, 10, "quorum"), (0.6, 3, "classic"), (4.0, 100, "quorum")]
)
def test_a_queue_whose_consumers_end_again_and_again(every, prefetch, kind):
    """What comes back began with the loop of connections, and is no more than these can have held."""
    film = lambda t: crashing(t, every=every, prefetch=prefetch, type=kind)  # noqa: E731

    result = seen(film, until=150, churn=lambda t: lives(t, every=every))
    (finding,) = of_rule(result)
    report = text(finding)

    assert ("warning", Certainty.LIKELY, QUEUE) == (finding.severity.value, finding.certainty, finding.involved)
    assert pytest.approx(110 / every, abs=8) == finding.facts["ended"]
    assert "lists no clients" in report.cause
    assert any("list_consumers" in (step.command or "") for step in report.steps)
    assert not any("None" in f"{step.text} {step.command or ''}" for step in report.steps)
    assert ["no_client_lists"] == [gap.reason for gap in result.inconclusive if gap.rule == "consumer-flapping"]


def test_it_is_information_for_a_minute():
    """A rolling restart looks the same."""
    film = lambda t: crashing(t, acked=20 * t)  # noqa: E731
    burst = lambda t: crashing(t, prefetch=60, acked=20 * t)  # noqa: E731

    assert [] == of_rule(seen(film, until=90, churn=lives))
    (finding,) = of_rule(seen(burst, until=95, churn=lives))

    assert ("info", Certainty.EARLY) == (finding.severity.value, finding.certainty)


def test_a_loop_that_was_there_before_shows_in_the_number_of_consumers():
    """Which falls and rises again; with acknowledgements of others, and beside a consumer that stays."""

    def film(t):
        gone = t in (50, 95, 125, 140)
        return parcels(
            returned=30 * (t // 1.5), acked=25 * t, held=14 if gone else 55, consumers=1 if gone else 2, ready=4
        )

    (finding,) = of_rule(seen(film, churn=lambda t: t // 1.5))

    assert ("warning", 0.5) == (finding.severity.value, pytest.approx(0.45, abs=0.1))
    assert finding.facts["delivered"] > finding.facts["redelivered"]


@pytest.mark.parametrize("every", [5, 15])
def test_a_consumer_that_dies_on_one_message(every):
    """It comes back three times; nothing is acknowledged, so no counter of the cluster is needed."""

    def film(t):
        turn, place = divmod(t, 30)
        here = place >= 20
        return parcels(returned=8 * (turn + here), held=8 if here else 0, consumers=int(here))

    (finding,) = of_rule(seen(film, until=150, every=every))
    report = text(finding)

    assert ("critical", QUEUE) == (finding.severity.value, finding.involved)
    assert finding.facts["rounds"] >= 3
    assert "makes no progress" in report.summary
    assert "lists no clients" in report.cause


def requeueing(t):
    """A consumer stays and requeues all that it gets, slowly."""
    return parcels(returned=5 * t)


def requeueing_fast(t):
    """It began when a loop of connections began, and returns more than these could have held."""
    return parcels(returned=400 * max(0, t - 40))


def retries(t):
    """One message in five is requeued once."""
    return parcels(returned=4 * t, acked=20 * t)


def pollers(t):
    """Messages are polled, requeued and polled again."""
    return parcels(returned=4 * t, polled=4 * t, consumers=0, held=3)


def jobs(t):
    """Workers take one message each and end."""
    return parcels(returned=0, acked=2 * t, held=1, consumers=int(t % 15 != 0))


def rolling(t):
    """Four consumers are replaced within 20 s, once."""
    done = min(4, max(0, (t - 60) // 5))
    return parcels(returned=40 * done, acked=9 * t, held=40, consumers=4 - int(60 <= t < 80))


def read_again(t):
    """A stream counts no redeliveries; its readers come and go."""
    return (queue("parcels", type="stream", consumers=int(t % 10 != 0), stats=stats(publish=10 * t, deliver=900 * t)),)


@pytest.mark.parametrize("film", [requeueing, requeueing_fast, retries, pollers, jobs, rolling, read_again])
@pytest.mark.parametrize(
    "churn",
    [lambda _: 0.0, lambda t: t // 1.5, lambda t: max(0.0, t - 40) // 1.5],
    ids=["no loop", "a loop", "a loop begins"],
)
def test_what_looks_like_it_is_not_accused(film, churn):
    """Whatever the moment, also while another application connects in a loop."""
    for until in range(45, 181, 15):
        assert [] == of_rule(seen(film, until=until, churn=churn))


def test_channels_of_our_own_probes_are_no_loop():
    """They end by design, and began when the consumer that requeues began."""
    own = (outcome("handshake", steps={"channel": step(count=43)}, at=WALL + 150),)

    assert [] == of_rule(seen(crashing, churn=lambda t: lives(t, every=1.4), outcomes=own))
