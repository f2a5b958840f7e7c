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
    """Equal up to what adding floats loses."""
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def intervals(demands, budget):
    """Seconds between two readings of each family at what it is granted, as the poller plans it."""
    granted = family_shares(demands, budget)
    return {name: interval_for(demand, granted[name]) for name, demand in demands.items()}


def share_used(demands, periods):
    """The share of a core that these readings take."""
    return sum(demand.cost / periods[name] for name, demand in demands.items())


@given(DEMANDED, BUDGETS)
def test_shares_are_never_more_than_the_budget_nor_than_what_is_wanted(demanded, budget):
    """Whatever is demanded."""
    granted = fair_shares(demanded, budget)

    assert list(demanded) == list(granted)
    assert sum(granted.values()) <= budget * (1 + 1e-9)
    assert all(granted[name] <= demanded[name] for name in demanded)


@given(DEMANDED, BUDGETS)
def test_nothing_is_left_while_somebody_wants_more(demanded, budget):
    """Either all have what they want or the budget is shared out whole."""
    granted = fair_shares(demanded, budget)

    assert granted == demanded or sum(granted.values()) == close(min(budget, sum(demanded.values())))


@given(DEMANDED, BUDGETS)
def test_nobody_gets_less_than_another_that_wants_as_much(demanded, budget):
    """Who wants more never gets less, and who goes without all it wants gets as much as anybody."""
    granted = fair_shares(demanded, budget)
    most = max(granted.values(), default=0.0)

    for name, share in granted.items():
        assert share >= min(demanded[name], most) * (1 - 1e-9)


def test_who_weighs_more_gets_more_of_what_is_scarce():
    """And no more than it wants: the rest goes to the others."""
    demanded = {"queues": 1.0, "memory": 1.0, "bindings": 0.001}

    assert {"queues": 0.042, "memory": 0.007, "bindings": 0.001} == close(fair_shares(demanded, 0.05, {"queues": 6}))
    assert {"queues": 1.0, "memory": 0.999, "bindings": 0.001} == close(fair_shares(demanded, 2.0, {"queues": 6}))


@given(DEMANDED, BUDGETS, st.floats(0.1, 10))
def test_equal_weights_are_no_weights(demanded, budget, weight):
    """Only what weighs more than another counts."""
    assert close(fair_shares(demanded, budget)) == fair_shares(demanded, budget, dict.fromkeys(demanded, weight))


MIN_SHARES = {"channels": 0.2, "queues": 0.5, "absent": 0.3}


@given(st.fixed_dictionaries(dict.fromkeys(("channels", "queues", "bindings", "memory"), st.floats(0, 10))), BUDGETS)
def test_a_smallest_share_is_never_less(demanded, budget):
    """Or all that is demanded, where that is less; and no more is given than there is."""
    granted = fair_shares(demanded, budget, {"bindings": 9}, MIN_SHARES)

    assert sum(granted.values()) == close(min(budget, sum(demanded.values())))
    for name, share in granted.items():
        assert share >= min(demanded[name], MIN_SHARES.get(name, 0) * budget) * (1 - 1e-9)
        assert share <= demanded[name]


def slow_broker(cost):
    """What every family wants of a broker whose every answer takes as long, at the min_interval intervals of 5 s."""
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
def test_what_verdicts_on_clients_need_is_read_in_time(cost, budget):
    """A broker whose every answer is dear: channels, consumers and connections come round before all that can wait."""
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


def test_the_smallest_shares_of_all_leave_something():
    """For what changes seldom, and has none."""
    assert sum(family.min_share for family in FAMILIES.values()) <= 7 / 8


@given(DEMANDS, BUDGETS)
def test_readings_stay_within_the_budget(demands, budget):
    """At the intervals that it gives."""
    assert share_used(demands, intervals(demands, budget)) <= budget * (1 + 1e-9)


@given(DEMANDS)
def test_all_run_at_their_shortest_interval_when_it_fits(demands):
    """A budget as large as all that is demanded stretches nothing."""
    budget = sum(demand.share for demand in demands.values()) * (1 + 1e-9)

    assert {name: demand.min_interval for name, demand in demands.items()} == close(intervals(demands, budget))


@given(DEMANDS, BUDGETS, BUDGETS)
def test_a_larger_budget_stretches_nobody_more(demands, one, other):
    """Monotone in the budget."""
    little, much = sorted((one, other))
    stretched = intervals(demands, little)

    assert all(period <= stretched[name] * (1 + 1e-9) for name, period in intervals(demands, much).items())


@given(DEMANDS, BUDGETS, st.data())
def test_who_gets_dearer_is_asked_no_sooner(demands, budget, data):
    """And nobody else is asked more often for it."""
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
    """They are asked at their min_interval interval_for, but never more than a fifth of the time."""
    vital = Demand(cost=vital.cost, min_interval=vital.min_interval, vital=True)
    alone, together = intervals(demands, budget), intervals({**demands, "vital": vital}, budget)

    assert alone == {name: together[name] for name in demands}
    assert max(vital.min_interval, 5 * vital.cost) == close(together["vital"])


def test_who_wants_little_gets_it_whole_and_the_rest_share_alike():
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
def test_totals_and_statistics_of_queues_share_what_the_queues_get(totals, share, most):
    """The totals take half of it, or what once a minute takes; statistics what is left, and half of it at min_share."""
    period, left = split_queue_share(totals, share, most)
    longest = max(totals.min_interval, TOTALS_INTERVAL_SECONDS, totals.cost / most)

    assert totals.min_interval <= period <= longest
    assert left >= share / 2
    if period < longest:
        assert totals.cost / period <= share / 2 * (1 + 1e-9)
        assert totals.cost / period + left == close(share)


def test_totals_of_a_large_broker_are_read_once_a_minute():
    """Whatever the budget; but where they take long, for a thirtieth of the time, or half of it while all is calm."""
    assert [60, 60, 90] == [split_queue_share(Demand(cost=cost, min_interval=5), 0.00375)[0] for cost in (0.34, 2, 3)]
    assert [5, 60, 60] == [split_queue_share(Demand(cost=0.34, min_interval=5), share)[0] for share in (0.2, 0.0113, 0)]
    calm = [
        split_queue_share(Demand(cost=cost, min_interval=5), 0.00375, IDLE_TOTALS_SHARE)[0] for cost in (0.34, 2, 3)
    ]
    assert [60, 120, 180] == calm


def test_who_gets_nothing_is_not_asked():
    """No division by zero, and no reading either."""
    assert interval_for(Demand(cost=1, min_interval=5), 0) == math.inf
    assert interval_for(Demand(cost=0, min_interval=5), 0) == 5
