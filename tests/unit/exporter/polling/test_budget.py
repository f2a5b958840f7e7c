import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.broker.families import FAMILIES
from exporter.polling.adaptive_budget import IDLE_TOTALS_SHARE
from exporter.polling.budget import (
    TOTALS_INTERVAL_SECONDS,
    TOTALS_MAX_SHARE,
    Demand,
    fair_shares,
    family_shares,
    interval_for,
    split_queue_share,
)
from exporter.polling.schedule import CLIENT_FAMILIES, VITAL_FAMILIES

BUDGETS = st.floats(0.001, 1)
DEMANDED = st.dictionaries(st.text(max_size=3), st.one_of(st.just(0.0), st.floats(1e-6, 10)), max_size=16)
COSTS = st.one_of(st.just(0.0), st.floats(1e-4, 120))
PLAIN = st.builds(Demand, cost=COSTS, min_interval=st.floats(1, 300))
DEMANDS = st.dictionaries(st.text(max_size=3), PLAIN, max_size=16)


def close(value):
    """Equal up to floating point rounding."""
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def intervals(demands, budget):
    """Seconds between two readings of each family at its granted share, as the poller plans it."""
    granted = family_shares(demands, budget)
    return {name: interval_for(demand, granted[name]) for name, demand in demands.items()}


def share_used(demands, periods):
    """The share of a core that these readings take."""
    return sum(demand.cost / periods[name] for name, demand in demands.items())


@given(DEMANDED, BUDGETS)
def test_shares_exceed_neither_the_budget_nor_the_demands(demanded, budget):
    """Whatever the demands are."""
    granted = fair_shares(demanded, budget)

    assert list(demanded) == list(granted)
    assert sum(granted.values()) <= budget * (1 + 1e-9)
    assert all(granted[name] <= demanded[name] for name in demanded)


@given(DEMANDED, BUDGETS)
def test_nothing_is_left_while_a_demand_is_unmet(demanded, budget):
    """Either all demands are met or the whole budget is used."""
    granted = fair_shares(demanded, budget)

    assert granted == demanded or sum(granted.values()) == close(min(budget, sum(demanded.values())))


@given(DEMANDED, BUDGETS)
def test_no_one_gets_less_than_another_with_the_same_demand(demanded, budget):
    """A higher demand never gets less, and an unmet demand gets as much as any other."""
    granted = fair_shares(demanded, budget)
    most = max(granted.values(), default=0.0)

    for name, share in granted.items():
        assert share >= min(demanded[name], most) * (1 - 1e-9)


def test_a_higher_weight_gets_a_larger_share():
    """But no more than its demand: the rest goes to the others."""
    demanded = {"queues": 1.0, "memory": 1.0, "bindings": 0.001}

    assert {"queues": 0.042, "memory": 0.007, "bindings": 0.001} == close(fair_shares(demanded, 0.05, {"queues": 6}))
    assert {"queues": 1.0, "memory": 0.999, "bindings": 0.001} == close(fair_shares(demanded, 2.0, {"queues": 6}))


@given(DEMANDED, BUDGETS, st.floats(0.1, 10))
def test_equal_weights_change_nothing(demanded, budget, weight):
    """Only relative weights count."""
    assert close(fair_shares(demanded, budget)) == fair_shares(demanded, budget, dict.fromkeys(demanded, weight))


MIN_SHARES = {"channels": 0.2, "queues": 0.5, "absent": 0.3}


@given(st.fixed_dictionaries(dict.fromkeys(("channels", "queues", "bindings", "memory"), st.floats(0, 10))), BUDGETS)
def test_a_minimum_share_is_guaranteed(demanded, budget):
    """Or the whole demand if that is less; the total stays within the budget."""
    granted = fair_shares(demanded, budget, {"bindings": 9}, MIN_SHARES)

    assert sum(granted.values()) == close(min(budget, sum(demanded.values())))
    for name, share in granted.items():
        assert share >= min(demanded[name], MIN_SHARES.get(name, 0) * budget) * (1 - 1e-9)
        assert share <= demanded[name]


def slow_broker(cost):
    """The demands of all families on a broker whose every answer takes the same time, at an interval of 5 s."""
    return {
        name: Demand(
            cost=cost,
            min_interval=max(5.0, family.min_interval),
            vital=name in VITAL_FAMILIES,
            weight=family.weight,
            min_share=family.min_share,
        )
        for name, family in FAMILIES.items()
    }


@pytest.mark.parametrize(("cost", "budget"), [(0.03, 0.01), (0.3, 0.1), (0.2, 0.05)])
def test_client_families_are_read_in_time(cost, budget):
    """With expensive answers, channels, consumers and connections are read more often than what can wait."""
    periods = intervals(slow_broker(cost), budget)
    needed = max(periods[name] for name in CLIENT_FAMILIES)

    assert needed <= 6 * cost / budget * (1 + 1e-9)
    assert needed <= 24
    assert periods["queues"] <= 8 / 3 * cost / budget * (1 + 1e-9)
    assert all(
        period >= needed
        for name, period in periods.items()
        if name not in (*CLIENT_FAMILIES, *VITAL_FAMILIES, "queues")
    )


def test_the_minimum_shares_leave_a_rest():
    """For families without one, which rarely change."""
    assert sum(family.min_share for family in FAMILIES.values()) <= 7 / 8


@given(DEMANDS, BUDGETS)
def test_readings_stay_within_the_budget(demands, budget):
    """At the planned intervals."""
    assert share_used(demands, intervals(demands, budget)) <= budget * (1 + 1e-9)


@given(DEMANDS)
def test_all_run_at_their_shortest_interval_when_it_fits(demands):
    """A budget as large as all demands stretches nothing."""
    budget = sum(demand.share for demand in demands.values()) * (1 + 1e-9)

    assert {name: demand.min_interval for name, demand in demands.items()} == close(intervals(demands, budget))


@given(DEMANDS, BUDGETS, BUDGETS)
def test_a_larger_budget_stretches_no_interval(demands, one, other):
    """Monotone in the budget."""
    little, much = sorted((one, other))
    stretched = intervals(demands, little)

    assert all(period <= stretched[name] * (1 + 1e-9) for name, period in intervals(demands, much).items())


@given(DEMANDS, BUDGETS, st.data())
def test_a_more_expensive_family_is_read_no_more_often(demands, budget, data):
    """Nor are the others read less often because of it."""
    if not demands:
        return
    name = data.draw(st.sampled_from(sorted(demands)))
    more_expensive = {
        **demands,
        name: Demand(cost=demands[name].cost * 2 + 0.1, min_interval=demands[name].min_interval),
    }
    before, after = intervals(demands, budget), intervals(more_expensive, budget)

    assert all(after[other] >= before[other] * (1 - 1e-9) for other in demands)


@given(DEMANDS, BUDGETS, PLAIN)
def test_vital_families_take_nothing_from_the_others(demands, budget, vital):
    """They are read at their shortest interval, but never more than a fifth of the time."""
    vital = Demand(cost=vital.cost, min_interval=vital.min_interval, vital=True)
    alone, together = intervals(demands, budget), intervals({**demands, "vital": vital}, budget)

    assert alone == {name: together[name] for name in demands}
    assert max(vital.min_interval, 5 * vital.cost) == close(together["vital"])


def test_small_demands_are_met_and_the_rest_share_equally():
    """The numbers of one case."""
    demands = {
        "consumers": Demand(cost=0.01, min_interval=5),
        "channels": Demand(cost=1, min_interval=5),
        "bindings": Demand(cost=12, min_interval=60),
        "queues": Demand(cost=2, min_interval=5),
    }

    assert {"consumers": 0.002, "channels": 0.016, "bindings": 0.016, "queues": 0.016} == close(
        family_shares(demands, 0.05)
    )
    assert {"consumers": 5, "channels": 62.5, "bindings": 750, "queues": 125} == close(intervals(demands, 0.05))


@given(PLAIN, BUDGETS, st.sampled_from([TOTALS_MAX_SHARE, IDLE_TOTALS_SHARE]))
def test_totals_and_statistics_divide_the_share_of_the_queues(totals, share, most):
    """Totals take half of it, or once a minute; statistics take the rest, at least half."""
    period, left = split_queue_share(totals, share, most)
    longest = max(totals.min_interval, TOTALS_INTERVAL_SECONDS, totals.cost / most)

    assert totals.min_interval <= period <= longest
    assert left >= share / 2
    if period < longest:
        assert totals.cost / period <= share / 2 * (1 + 1e-9)
        assert totals.cost / period + left == close(share)


def test_totals_of_a_large_broker_are_read_once_a_minute():
    """Whatever the budget; but at most 1/30 of the time, or 1/60 while the broker is idle."""
    assert [60, 60, 90] == [split_queue_share(Demand(cost=cost, min_interval=5), 0.00375)[0] for cost in (0.34, 2, 3)]
    assert [5, 60, 60] == [split_queue_share(Demand(cost=0.34, min_interval=5), share)[0] for share in (0.2, 0.0113, 0)]
    idle = [
        split_queue_share(Demand(cost=cost, min_interval=5), 0.00375, IDLE_TOTALS_SHARE)[0] for cost in (0.34, 2, 3)
    ]
    assert [60, 120, 180] == idle


def test_a_family_without_a_share_is_not_read():
    """No division by zero, and no reading."""
    assert interval_for(Demand(cost=1, min_interval=5), 0) == math.inf
    assert interval_for(Demand(cost=0, min_interval=5), 0) == 5
