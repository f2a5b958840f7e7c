from itertools import pairwise

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Part
from ackscope.topology import Bindings, Exchange
from exporter.broker.reader import PollCost
from exporter.polling.routing_hints import RoutingHints
from exporter.polling.schedule import OLDEST_SECONDS, EndpointSchedule


def part(value, mono):
    """A reading at a time."""
    return Part(value=value, at=Instant(wall=1.7e9 + mono, mono=mono))


def exchange(arrived, routed, name="orders"):
    """An exchange with these counters."""
    return Exchange(vhost="/", name=name, stats=MessageStats(publish_in=arrived, publish_out=routed))


def wanted(*counters, bindings_at=1.0):
    """What is wanted after readings of an exchange, 15 s apart."""
    hints, found = RoutingHints(), frozenset()
    for place, (arrived, routed) in enumerate(counters, 1):
        found = hints.update(part((exchange(arrived, routed),), 15.0 * place), part(Bindings(), bindings_at))
    return found


@pytest.mark.parametrize(
    "counters",
    [
        [(0, 0), (150, 150), (300, 270)],
        [(0, 0), (150, 150), (300, 150)],
        [(0, 0), (150, 300), (300, 450)],
        [(0, 0), (150, 150), (150, 150), (300, 150)],
    ],
    ids=["some have no route", "none has", "one of two copies", "after a pause"],
)
def test_an_exchange_that_begins_to_route_less_asks_for_its_bindings(counters):
    """A binding may be gone."""
    assert {"bindings"} == wanted(*counters)


@pytest.mark.parametrize(
    "counters",
    [
        [(0, 0), (150, 150), (300, 300)],
        [(0, 0), (150, 75), (300, 150)],
        [(0, 0), (150, 0), (300, 0)],
        [(0, 0), (150, 150), (153, 150)],
        [(900, 900), (1050, 1050), (10, 0), (160, 150)],
        [(0, 0), (150, 150)],
        [(0, None), (None, None), (150, None)],
        [(0, 0), (150, 150), (300, 600)],
    ],
    ids=["steady", "drops as before", "never routed", "few", "counters began again", "two", "no counters", "more"],
)
def test_other_exchanges_ask_for_nothing(counters):
    """They route as many as before, or nothing is known."""
    assert frozenset() == wanted(*counters)


def test_the_exchanges_are_wanted_once_more_after_the_bindings():
    """A rule compares what they routed before and after; then the suspicion is settled."""
    hints, bindings = RoutingHints(), part(Bindings(), 1.0)
    for place, routed in enumerate((0, 150, 150), 1):
        latest = part((exchange(150 * place, routed),), 15.0 * place)
        found = hints.update(latest, bindings)
    assert {"bindings"} == found
    assert {"bindings"} == hints.update(latest, bindings)
    bindings = part(Bindings(), 50.0)
    assert {"exchanges"} == hints.update(latest, bindings)
    assert frozenset() == hints.update(part((exchange(600, 150),), 60.0), bindings)


def play(interval, *, hinted, until=1200, drops=(200,)):
    """Times at which bindings are read, in rounds every 5 s; the exchange routes nothing for 60 s after each drop."""
    hints, times = RoutingHints(), []
    families = {"exchanges": EndpointSchedule("exchanges", 15, 5), "bindings": EndpointSchedule("bindings", 15, 5)}
    parts, routed = {name: Part() for name in families}, 0
    for now in range(0, until, 5):
        routed += 0 if any(at <= now < at + 60 for at in drops) else 50
        found = hints.update(parts["exchanges"], parts["bindings"]) if hinted else ()
        for name, schedule in families.items():
            usual, horizon = {"exchanges": 15, "bindings": interval}[name], now + 2.5
            if schedule.is_due(usual, horizon):
                schedule.start(usual)
            elif name in found and schedule.is_wanted(0.01, horizon):
                schedule.start_early(usual, horizon)
            else:
                continue
            parts[name] = part((exchange(10 * now, routed),) if name == "exchanges" else Bindings(), now + 0.1)
            spent = schedule.stats.cost_seconds
            schedule.finish(
                parts[name], Instant(1.7e9 + now, now), parts[name].at, PollCost(spent, 0, 0),
                PollCost(spent + 0.08, 1, 10**9),
            )  # fmt: skip
            times += [now] if name == "bindings" else []
    return times


@pytest.mark.parametrize("interval", [65, 240])
def test_bindings_are_read_soon_after_an_exchange_begins_to_drop(interval):
    """A regular reading would come up to an interval later; the exchanges are read every 15 s."""
    after = [at for at in play(interval, hinted=True) if at >= 205]

    assert after[0] <= 225


def test_it_costs_no_reading_more_on_average():
    """A reading that is early makes the next one late, also where an exchange begins to drop again and again."""
    again = range(100, 3600, 90)

    usual, hinted = (play(65, hinted=hinted, until=3600, drops=again) for hinted in (False, True))

    assert len(hinted) <= len(usual) + 2
    assert max(later - before for before, later in pairwise(hinted)) <= 2 * 65 + 5


def test_no_reading_is_older_than_rules_accept():
    """Where the interval is four minutes, an early reading does not make the next one later than that."""
    times = play(240, hinted=True, until=3600, drops=range(100, 3600, 400))

    assert max(later - before for before, later in pairwise(times)) <= OLDEST_SECONDS + 5


def test_an_expensive_reading_waits_for_its_share():
    """The list of 20,000 bindings took 2 s: at 0.01 of a core it is read every 200 s at most."""
    schedule = EndpointSchedule("bindings", 15, 5)
    for began in (0.0, 300.0):
        schedule.start(300)
        at, spent = Instant(1.7e9 + began, began), schedule.stats.cost_seconds
        schedule.finish(part(Bindings(), began), at, at, PollCost(spent, 0, 0), PollCost(spent + 2.0, 1, 10**9))

    assert not schedule.is_wanted(0.01, 499.0)
    assert schedule.is_wanted(0.01, 500.0)
