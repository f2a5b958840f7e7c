"""The budget of polling if none is configured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Node, Overview, Part
from exporter.broker.families import FAMILIES
from exporter.polling.adaptive_budget import (
    CHEAP_SECONDS,
    IDLE_CHECK_MAX_AGE_SECONDS,
    IDLE_FULL_INTERVAL_SECONDS,
    IDLE_TOTALS_SHARE,
    MAX_SHARE,
    MIN_IDLE_SHARE,
    ActivityDetector,
    AdaptiveBudget,
    default_budget,
)
from exporter.polling.budget import TOTALS_MAX_SHARE, Demand

WELL = Part(value=(Node(name="rabbit@a", running=True, mem_alarm=False, disk_free_alarm=False),))
EXPENSIVE = {"queues": Demand(cost=0.1, min_interval=5.0)}
DEMANDS = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.builds(Demand, cost=st.floats(0, 1), min_interval=st.floats(1, 60), vital=st.booleans()),
)


def reading(second, redelivered=None, **sums):
    """A reading of the overview at a second."""
    value = Overview(stats=MessageStats(redeliver=redelivered), **sums)
    return Part(value=value, at=Instant(wall=1e9 + second, mono=float(second)))


def is_active(*readings, nodes=WELL):
    """Whether the broker is active after these readings."""
    detector = ActivityDetector()
    for each in readings:
        detector.update(each, nodes)
    return detector.active


@pytest.mark.parametrize(
    ("queues", "share"), [(0, 0.00125), (1000, 0.00125), (4000, 0.005), (8000, 0.01), (100_000, 0.01)]
)
def test_the_budget_of_an_idle_broker_depends_on_its_size(queues, share):
    """Large ones get the maximum: otherwise their queues would not be read for half an hour."""
    assert share == pytest.approx(default_budget(queues, EXPENSIVE, active=False))
    assert default_budget(queues, EXPENSIVE, active=True) == MAX_SHARE


def test_cheap_families_are_read_in_addition():
    """With some tens of queues all of them are read every time."""
    cheap = {"channels": Demand(cost=0.004, min_interval=5.0), "exchanges": Demand(cost=0.003, min_interval=15.0)}
    vital = {"overview": Demand(cost=0.004, min_interval=5.0, vital=True)}

    assert MIN_IDLE_SHARE + 0.001 == pytest.approx(default_budget(20, EXPENSIVE | cheap | vital, active=False))


@given(st.integers(0, 10**6), DEMANDS, st.booleans())
def test_it_is_never_more_than_one_percent_of_a_core(queues, demands, active):
    """Nor less than the minimum of an idle broker, whatever the demands are."""
    assert MIN_IDLE_SHARE <= default_budget(queues, demands, active=active) <= MAX_SHARE
    more_expensive = {
        name: Demand(cost=it.cost + CHEAP_SECONDS, min_interval=it.min_interval) for name, it in demands.items()
    }
    assert default_budget(queues, more_expensive, active=active) == default_budget(queues, {}, active=active)


@pytest.mark.parametrize(
    ("before", "after", "active"),
    [
        ({"messages_ready": 0}, {"messages_ready": 90}, False),
        ({"messages_ready": 0}, {"messages_ready": 110}, True),
        ({"messages_ready": 4000}, {"messages_ready": 5000}, False),
        ({"messages_ready": 4000}, {"messages_ready": 5200}, True),
        ({"messages_ready": 4000}, {"messages_ready": 0}, False),
        ({"messages_unacked": 10}, {"messages_unacked": 300}, True),
        ({"consumers": 20}, {"consumers": 16}, False),
        ({"consumers": 20}, {"consumers": 10}, True),
        ({"consumers": 10}, {"consumers": 20}, False),
        ({"connections": 200}, {"connections": 150}, True),
        ({"connections": 3}, {"connections": 1}, False),
        ({"messages_ready": 0}, {}, False),
        ({}, {"messages_ready": 9000}, False),
    ],
)
def test_a_backlog_and_a_loss_of_clients_are_activity(before, after, active):
    """Small changes, first values and missing values are not."""
    assert is_active(reading(0, **before), reading(5, **after)) is active


def test_a_growing_redelivery_rate_is_activity():
    """A constant rate is not."""
    evenly = [reading(5 * number, 500 * number) for number in range(5)]

    assert not is_active(*evenly)
    assert is_active(*evenly, reading(25, 2000 + 900))
    assert not is_active(*evenly, reading(25, 10)), "the counter was reset"
    assert not is_active(*evenly, reading(25, None), reading(30, 9000)), (
        "without a previous reading the rate is unknown"
    )


def test_a_reading_counts_once():
    """It is in several rounds if the next one is late."""
    evenly = [reading(5 * number, 500 * number) for number in range(5)]

    assert not is_active(*(each for each in evenly for _ in range(3)))


@pytest.mark.parametrize("ill", [{"running": False}, {"mem_alarm": True}, {"disk_free_alarm": True}])
def test_an_unhealthy_node_is_activity(ill):
    """Whatever the totals are."""
    assert is_active(reading(0, messages_ready=5), nodes=Part(value=(*WELL.value, Node(name="rabbit@b", **ill))))
    assert is_active(Part(), nodes=Part(value=(Node(name="rabbit@b", **ill),)))
    assert not is_active(reading(0, messages_ready=5), nodes=Part(value=(Node(name="rabbit@b"),)))


def test_a_broker_that_does_not_answer_is_not_idle():
    """Its latest values say nothing about now."""
    idle, hung = reading(0, messages_ready=5), "127.0.0.1:15672/api: no answer within 10 s"

    assert is_active(replace(idle, error=hung))
    assert is_active(idle, nodes=replace(WELL, error=hung))
    assert not is_active(idle, replace(idle, error=hung), reading(10, messages_ready=5))


def test_an_unchanged_backlog_becomes_idle_again():
    """After some minutes it is known."""
    before, after = reading(0, messages_ready=0), [reading(second, messages_ready=5000) for second in range(5, 400, 5)]
    detector = ActivityDetector()
    detector.update(before, WELL)
    seen = []
    for each in after:
        detector.update(each, WELL)
        seen.append(detector.active)

    assert all(seen[:29])
    assert not seen[-1]
    assert sorted(seen, reverse=True) == seen


def test_a_configured_budget_is_fixed():
    """Whatever happens on the broker."""
    fixed, free = AdaptiveBudget(0.05), AdaptiveBudget(None)
    rising = [reading(0, queues=1000, messages_ready=0), reading(5, queues=1000, messages_ready=5000)]

    assert (0.05, MIN_IDLE_SHARE) == (fixed.share, free.share)
    assert [(0.05, False), (0.05, False)] == [planned(fixed, each) for each in rising]
    assert [(MIN_IDLE_SHARE, True), (MAX_SHARE, False)] == [planned(free, each) for each in rising]
    assert MAX_SHARE == free.share
    assert planned(AdaptiveBudget(None), Part()) == (MIN_IDLE_SHARE, True)


def test_polling_is_reduced_only_while_idle():
    """Half the totals, rare full readings, reused checks; none of it with a configured budget."""
    fixed, free = AdaptiveBudget(0.05), AdaptiveBudget(None)
    reduced = []
    for overview in (reading(0, messages_ready=0), reading(5, messages_ready=5000)):
        for budget in (fixed, free):
            planned(budget, overview)
            reduced.append((budget.totals_max_share, budget.full_interval, budget.check_max_age))

    always = (TOTALS_MAX_SHARE, 0.0, 0.0)
    idle = (IDLE_TOTALS_SHARE, IDLE_FULL_INTERVAL_SECONDS, IDLE_CHECK_MAX_AGE_SECONDS)
    assert [always, idle, always, always] == reduced


def planned(budget, overview):
    """The share, and whether the broker is idle, in a round after this reading."""
    budget.plan(EXPENSIVE, overview, WELL)
    return budget.share, budget.idle


RARELY = {"exchanges": 30, "links": 30, **dict.fromkeys(("vhosts", "auth", "policies", "limits", "features"), 60)}


@pytest.mark.parametrize(
    ("cost", "queues_interval", "expected"),
    [
        (CHEAP_SECONDS / 2, 0.0, {}),
        (CHEAP_SECONDS / 2, 30.0, dict.fromkeys(("exchanges", "links", "vhosts", "auth", "bindings"), 30)),
        (CHEAP_SECONDS / 2, 150.0, {**RARELY, "bindings": 150, "memory": 150}),
        (CHEAP_SECONDS, 0.0, {**RARELY, "bindings": 240, "memory": 240}),
    ],
)
def test_configuration_is_read_less_often_while_idle(cost, queues_interval, expected):
    """Cheap families as often as the queues; everything else, and all with a configured budget, as usual."""
    demands = {name: Demand(cost=cost, min_interval=max(5.0, family.min_interval)) for name, family in FAMILIES.items()}
    free, idle, rising = AdaptiveBudget(None), reading(0, messages_ready=0), reading(5, messages_ready=5000)
    reduced = free.plan(demands, idle, WELL, queues_interval)
    longer = {name: reduced[name].min_interval for name in demands if reduced[name] != demands[name]}

    assert longer == expected
    assert free.plan(demands, rising, WELL, queues_interval) == demands
    assert AdaptiveBudget(0.05).plan(demands, idle, WELL, queues_interval) == demands
