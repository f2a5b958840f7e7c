"""What polling may take where nobody says it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Node, Overview, Part
from exporter.broker.families import FAMILIES
from exporter.polling.allowed import (
    CALM,
    CALM_CHECKS_SECONDS,
    CALM_FULL_SECONDS,
    CALM_TOTALS_SHARE,
    CHEAP_SECONDS,
    MOST,
    Allowed,
    Stir,
    by_size,
)
from exporter.polling.budget import TOTALS_SHARE, Demand

WELL = Part(value=(Node(name="rabbit@a", running=True, mem_alarm=False, disk_free_alarm=False),))
DEAR = {"queues": Demand(cost=0.1, shortest=5.0)}
DEMANDS = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.builds(Demand, cost=st.floats(0, 1), shortest=st.floats(1, 60), vital=st.booleans()),
)


def told(second, redelivered=None, **sums):
    """A reading of the overview at a second."""
    value = Overview(stats=MessageStats(redeliver=redelivered), **sums)
    return Part(value=value, at=Instant(wall=1e9 + second, mono=float(second)))


def moves(*readings, nodes=WELL):
    """Whether something moves after these readings."""
    stir = Stir()
    for each in readings:
        stir.note(each, nodes)
    return stir.moving


@pytest.mark.parametrize(
    ("queues", "share"), [(0, 0.00125), (1000, 0.00125), (4000, 0.005), (8000, 0.01), (100_000, 0.01)]
)
def test_a_calm_broker_is_read_by_its_size(queues, share):
    """Large ones get the whole: their queues would not be seen for half an hour else."""
    assert share == pytest.approx(by_size(queues, DEAR, moving=False))
    assert by_size(queues, DEAR, moving=True) == MOST


def test_what_is_cheap_is_read_beside():
    """Who has some tens of queues sees all of them every time."""
    cheap = {"channels": Demand(cost=0.004, shortest=5.0), "exchanges": Demand(cost=0.003, shortest=15.0)}
    vital = {"overview": Demand(cost=0.004, shortest=5.0, vital=True)}

    assert CALM + 0.001 == pytest.approx(by_size(20, DEAR | cheap | vital, moving=False))


@given(st.integers(0, 10**6), DEMANDS, st.booleans())
def test_it_is_never_more_than_a_hundredth_of_a_core(queues, demands, moving):
    """Nor less than a calm broker gets, however much is wanted."""
    assert CALM <= by_size(queues, demands, moving=moving) <= MOST
    dearer = {name: Demand(cost=it.cost + CHEAP_SECONDS, shortest=it.shortest) for name, it in demands.items()}
    assert by_size(queues, dearer, moving=moving) == by_size(queues, {}, moving=moving)


@pytest.mark.parametrize(
    ("before", "after", "moving"),
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
def test_a_backlog_and_a_loss_of_clients_move(before, after, moving):
    """A little up and down does not, nor what is seen for the first time, nor what is not told."""
    assert moves(told(0, **before), told(5, **after)) is moving


def test_redelivery_moves_when_it_grows():
    """By the second: a broker that redelivers evenly is as it was."""
    evenly = [told(5 * number, 500 * number) for number in range(5)]

    assert not moves(*evenly)
    assert moves(*evenly, told(25, 2000 + 900))
    assert not moves(*evenly, told(25, 10)), "the broker began to count anew"
    assert not moves(*evenly, told(25, None), told(30, 9000)), "of what grew nobody knows how fast"


def test_one_reading_is_one():
    """It is there in several rounds where the next one is late."""
    evenly = [told(5 * number, 500 * number) for number in range(5)]

    assert not moves(*(each for each in evenly for _ in range(3)))


@pytest.mark.parametrize("ill", [{"running": False}, {"mem_alarm": True}, {"disk_free_alarm": True}])
def test_a_node_that_is_ill_moves(ill):
    """Whatever the sums say."""
    assert moves(told(0, messages_ready=5), nodes=Part(value=(*WELL.value, Node(name="rabbit@b", **ill))))
    assert moves(Part(), nodes=Part(value=(Node(name="rabbit@b", **ill),)))
    assert not moves(told(0, messages_ready=5), nodes=Part(value=(Node(name="rabbit@b"),)))


def test_a_broker_that_does_not_answer_is_not_calm():
    """What it said last says nothing of now."""
    calm, hung = told(0, messages_ready=5), "127.0.0.1:15672/api: no answer within 10 s"

    assert moves(replace(calm, error=hung))
    assert moves(calm, nodes=replace(WELL, error=hung))
    assert not moves(calm, replace(calm, error=hung), told(10, messages_ready=5))


def test_what_stays_as_it_is_becomes_calm_again():
    """A backlog that nobody takes is known after some minutes, and watched like any other."""
    before, after = told(0, messages_ready=0), [told(second, messages_ready=5000) for second in range(5, 400, 5)]
    stir = Stir()
    stir.note(before, WELL)
    seen = []
    for each in after:
        stir.note(each, WELL)
        seen.append(stir.moving)

    assert all(seen[:29])
    assert not seen[-1]
    assert sorted(seen, reverse=True) == seen


def test_a_budget_that_is_set_is_that():
    """Whatever moves."""
    fixed, free = Allowed(0.05), Allowed(None)
    rising = [told(0, queues=1000, messages_ready=0), told(5, queues=1000, messages_ready=5000)]

    assert (0.05, CALM) == (fixed.share, free.share)
    assert [(0.05, False), (0.05, False)] == [planned(fixed, each) for each in rising]
    assert [(CALM, True), (MOST, False)] == [planned(free, each) for each in rising]
    assert MOST == free.share
    assert planned(Allowed(None), Part()) == (CALM, True)


def test_only_a_calm_broker_is_spared():
    """Totals take half, few queues are read seldom, checks that passed not always; nothing of it with a budget set."""
    fixed, free = Allowed(0.05), Allowed(None)
    spared = []
    for overview in (told(0, messages_ready=0), told(5, messages_ready=5000)):
        for allowed in (fixed, free):
            planned(allowed, overview)
            spared.append((allowed.totals, allowed.full_every, allowed.checks_good_for))

    always = (TOTALS_SHARE, 0.0, 0.0)
    calm = (CALM_TOTALS_SHARE, CALM_FULL_SECONDS, CALM_CHECKS_SECONDS)
    assert [always, calm, always, always] == spared


def planned(allowed, overview):
    """The share, and whether the broker is calm, for a round after this reading."""
    allowed.plan(DEAR, overview, WELL)
    return allowed.share, allowed.calm


SELDOM = {"exchanges": 30, "links": 30, **dict.fromkeys(("vhosts", "auth", "policies", "limits", "features"), 60)}


@pytest.mark.parametrize(
    ("cost", "queues_every", "expected"),
    [
        (CHEAP_SECONDS / 2, 0.0, {}),
        (CHEAP_SECONDS / 2, 30.0, dict.fromkeys(("exchanges", "links", "vhosts", "auth", "bindings"), 30)),
        (CHEAP_SECONDS / 2, 150.0, {**SELDOM, "bindings": 150, "memory": 150}),
        (CHEAP_SECONDS, 0.0, {**SELDOM, "bindings": 240, "memory": 240}),
    ],
)
def test_what_seldom_changes_is_asked_less_while_it_is_calm(cost, queues_every, expected):
    """What is cheap, no less than the queues; all else is wanted as often as ever, and everything by a budget set."""
    demands = {name: Demand(cost=cost, shortest=max(5.0, family.every)) for name, family in FAMILIES.items()}
    free, calm, rising = Allowed(None), told(0, messages_ready=0), told(5, messages_ready=5000)
    spared = free.plan(demands, calm, WELL, queues_every)
    longer = {name: spared[name].shortest for name in demands if spared[name] != demands[name]}

    assert longer == expected
    assert free.plan(demands, rising, WELL, queues_every) == demands
    assert Allowed(0.05).plan(demands, calm, WELL, queues_every) == demands
