"""Caps on objects without a remainder: links, policies, limits, features, virtual hosts. Left out ones are counted."""

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Part, Snapshot
from ackscope.topology import Feature, Limit, Link, Policy, VHost
from exporter.exposition.collectors import dropped, features, limits, links, policies, vhosts
from tests.unit.exporter.exposition.collectors.reading import values

AT = Instant(wall=1.7e9, mono=9.0)
MANY = {
    "links": tuple(Link(kind="shovel", name=name, type="dynamic", state=state) for name, state in (
        ("a", "running"), ("b", "running"), ("c", "terminated"))),
    "policies": tuple(Policy(vhost="/", name=name, priority=priority) for name, priority in (
        ("a", 0), ("b", 1), ("c", 9))),
    "limits": tuple(Limit(scope="vhost", subject=name, name="max-queues", value=value) for name, value in (
        ("a", 100), ("b", 50), ("c", 2))),
    "features": tuple(Feature(name=name, state=state, stage="stable") for name, state in (
        ("a", "enabled"), ("b", "enabled"), ("c", "disabled"))),
    "vhosts": tuple(VHost(name=name, messages=messages, tracing=False) for name, messages in (
        ("a", 0), ("b", 1), ("c", 9))),
}  # fmt: skip
"""Three objects of each kind; the last one matters most."""

SHOWN = {
    "links": (links.collect, "ackscope_link_up", 3),
    "policies": (policies.collect, "ackscope_policy_priority", 2),
    "limits": (limits.collect, "ackscope_limit", 2),
    "features": (features.collect, "ackscope_feature_flag_enabled", 1),
    "vhosts": (vhosts.collect, "ackscope_vhost_tracing", 1),
}
"""The collector of each kind, one of its metrics, and the position of the object's name in the labels."""


def cluster(kind):
    """Return a cluster with objects of this kind only."""
    return Snapshot(cluster="shop", taken=AT, **{kind: Part(value=MANY[kind], at=AT)})


def names(kind, **settings):
    """Return the objects that have a series of their own."""
    collect, metric, place = SHOWN[kind]
    return {key[place] for key in values(collect, cluster(kind), **settings) if key[0] == metric}


@pytest.mark.parametrize("kind", SHOWN)
def test_all_are_shown_where_there_is_room(kind):
    """No object is counted as left out."""
    room = {f"max_{kind}": 3}

    assert {"a", "b", "c"} == names(kind, **room) == names(kind)
    assert values(dropped.collect, cluster(kind), **room)["ackscope_dropped_series", kind] == 0


@pytest.mark.parametrize("kind", SHOWN)
def test_the_cap_keeps_what_matters_and_the_rest_is_counted(kind):
    """Nothing is dropped silently."""
    cap = {f"max_{kind}": 1}

    assert {"c"} == names(kind, **cap)
    assert {("ackscope_dropped_series", kind): 2} == values(dropped.collect, cluster(kind), **cap)


def test_sums_by_state_count_all_links():
    """Links beyond the cap are counted too."""
    seen = values(links.collect, cluster("links"), max_links=1)

    assert (2, 1) == (seen["rabbitmq_shovel_dynamic", "running"], seen["rabbitmq_shovel_dynamic", "terminated"])
