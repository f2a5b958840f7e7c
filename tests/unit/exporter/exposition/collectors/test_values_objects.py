"""Values of virtual hosts, bindings, policies, limits and links, for a handmade cluster."""

from dataclasses import replace

from ackscope.snapshot import Connection, Part, Queue
from ackscope.topology import Bindings, Exchange, Limit, Link
from exporter.exposition.cardinality.selection import ClusterSelection, SelectedObjects, Selection
from exporter.exposition.cardinality.top_k import select_all
from exporter.exposition.collectors import bindings, limits, links, policies, vhosts
from tests.unit.exporter.full import full
from tests.unit.exporter.made import part


def values(collect, snapshot, selection=None):
    """Metric name and label values (without the cluster) -> value."""
    return {
        (sample.name, *list(sample.labels.values())[1:]): sample.value
        for metric in collect([snapshot], selection or select_all([snapshot]))
        for sample in metric.samples
    }


def test_a_virtual_host_is_reported_node_by_node():
    """Running on one node and stopped on another gives two series."""
    seen = values(vhosts.collect, full())

    assert seen["rabbitmq_cluster_vhost_status", "/", "rabbit@one"] == 1
    assert seen["rabbitmq_cluster_vhost_status", "/", "rabbit@two"] == 0
    assert seen["ackscope_vhost_queues", "/"] == 2


def test_connections_of_a_virtual_host_are_withheld_while_one_does_not_say():
    """That connection may belong to the virtual host."""
    some = (Connection(name="k", vhost="/"), Connection(name="l", vhost=None))
    seen = values(vhosts.collect, full(connections=part(some)))

    assert ("ackscope_vhost_connections", "/") not in seen
    assert values(vhosts.collect, full(connections=part(some[:1])))["ackscope_vhost_connections", "/"] == 1


def test_bindings_are_reported_of_each_exchange():
    """One that applications made and nothing is bound to is counted; what the broker made is not."""
    some = (
        Exchange(vhost="/", name="orders"),
        Exchange(vhost="/", name="nobody"),
        Exchange(vhost="/", name="amq.topic"),
    )
    seen = values(bindings.collect, full(exchanges=part(some)))

    assert seen["rabbitmq_cluster_exchange_bindings", "/", "orders", ""] == 1
    assert seen["rabbitmq_cluster_exchange_bindings", "/", "nobody", ""] == 0
    assert seen[("ackscope_exchanges_unbound",)] == 1


def test_bindings_of_exchanges_that_are_not_shown_are_in_the_remainder():
    """The sum over all series is that of all bindings."""
    snapshot = full(bindings=part(Bindings(counts={("/", "orders"): 2, ("/", "a"): 3, ("/", "b"): 4})))
    chosen = SelectedObjects(shown=(Exchange(vhost="/", name="orders", type="topic"),), omitted=2)
    selection = Selection(clusters={"shop": ClusterSelection(exchanges=chosen)})
    seen = values(bindings.collect, snapshot, selection)

    assert seen["rabbitmq_cluster_exchange_bindings", "/", "orders", "topic"] == 2
    assert seen["rabbitmq_cluster_exchange_bindings", "", "(other)", ""] == 7


def test_a_policy_is_reported_with_what_it_rules():
    """By the names that queues and exchanges give; operator policies are named by no queue."""
    seen = values(policies.collect, full())

    assert seen["ackscope_policy_queues", "/", "cap", "policy"] == 1
    assert seen["ackscope_policy_exchanges", "/", "cap", "policy"] == 1
    assert seen["ackscope_policy_info", "/", "most", "operator", "queues", ".*"] == 1
    assert ("ackscope_policy_queues", "/", "most", "operator") not in seen


def test_a_policy_is_not_called_idle_while_queues_were_not_read_in_full():
    """The policy may apply to a queue with only totals known."""
    totals_only = (Queue(vhost="/", name="far", messages=1),)
    seen = values(policies.collect, full(queues=part(totals_only)))

    assert ("ackscope_policy_queues", "/", "cap", "policy") not in seen
    assert seen["ackscope_policy_exchanges", "/", "cap", "policy"] == 1


def test_a_limit_stands_beside_what_is_used():
    """A share can be computed; no limit is no sample."""
    seen = values(limits.collect, full())

    assert seen["ackscope_limit", "vhost", "/", "max-queues"] == 10
    assert seen["ackscope_limit_used", "vhost", "/", "max-queues"] == 2
    assert seen["ackscope_limit_used", "user", "shop", "max-channels"] == 1
    assert ("ackscope_limit", "vhost", "/", "max-connections") not in seen


def test_what_is_used_of_a_limit_is_withheld_where_it_was_not_read():
    """The limit itself is known all the same."""
    snapshot = replace(full(), queues=Part())
    seen = values(limits.collect, snapshot)

    assert seen["ackscope_limit", "vhost", "/", "max-queues"] == 10
    assert ("ackscope_limit_used", "vhost", "/", "max-queues") not in seen


def test_a_limit_of_a_virtual_host_without_anything_is_used_by_none():
    """Everything was read, so 0 is correct."""
    empty = (Limit(scope="vhost", subject="empty", name="max-queues", value=3),)

    assert values(limits.collect, full(limits=part(empty)))["ackscope_limit_used", "vhost", "empty", "max-queues"] == 0


SHOVEL = ("shovel", "/", "away", "", "", "rabbit@one")
FEDERATION = ("federation", "/", "hub", "hub", "orders", "rabbit@one")


def test_a_link_is_up_only_while_it_runs():
    """A state that this page does not know is down and shown by its own word."""
    seen = values(links.collect, full())

    assert seen["ackscope_link_up", *SHOVEL] == 1
    assert seen["ackscope_link_up", *FEDERATION] == 0
    assert seen["ackscope_link_state", *FEDERATION, "blocked"] == 1
    assert seen["ackscope_link_state", *FEDERATION, "running"] == 0


def test_links_are_counted_by_state_as_the_official_plugins_do():
    """With a zero for the states that none is in, so that a graph does not end."""
    seen = values(links.collect, full())

    assert seen["rabbitmq_shovel_dynamic", "running"] == 1
    assert seen["rabbitmq_shovel_dynamic", "terminated"] == 0
    assert seen["rabbitmq_shovel_static", "terminated"] == 1
    assert seen["rabbitmq_federation_links", "blocked"] == 1


def test_a_link_without_a_state_is_neither_up_nor_down():
    """And no count is made that would leave it out."""
    odd = (
        Link(kind="shovel", name="odd", type="dynamic"),
        Link(kind="shovel", name="b", type="dynamic", state="running"),
    )
    seen = values(links.collect, full(links=part(odd)))

    assert not [key for key in seen if key[0] == "ackscope_link_up" and key[3] == "odd"]
    assert not [key for key in seen if key[0] == "rabbitmq_shovel_dynamic"]
