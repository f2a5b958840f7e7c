"""The names of rabbitmq_exporter, made from the same snapshots."""

import pytest

from ackscope.snapshot import Part, Queue
from exporter.docs import metrics as page
from exporter.exposition.cardinality.selection import ClusterSelection, SelectedObjects, Selection
from exporter.exposition.cardinality.top_k import select_all
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.compat import collect as ended
from exporter.exposition.compat import detailed
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.not_provided import NOT_PROVIDED
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.compat.table import OLD_METRICS, QUEUES
from exporter.exposition.encode import render
from tests.unit.exporter.exposition.collectors.test_collectors import check_declared
from tests.unit.exporter.full import full
from tests.unit.exporter.made import part, promtool, small

ITS_NAMES = """
up module_up module_scrape_duration_seconds exporter_build_info version_info
channels connections consumers queues exchanges queue_messages_global queue_messages_ready_global
queue_messages_unacknowledged_global messages_publish_rate messages_deliver_no_ack_rate messages_deliver_rate
exchange_messages_published_total exchange_messages_published_in_total exchange_messages_published_out_total
exchange_messages_confirmed_total exchange_messages_delivered_total exchange_messages_delivered_noack_total
exchange_messages_get_total exchange_messages_get_noack_total exchange_messages_ack_total
exchange_messages_redelivered_total exchange_messages_returned_total
uptime running node_mem_used node_mem_limit node_mem_alarm node_disk_free node_disk_free_alarm node_disk_free_limit
fd_used fd_available sockets_used sockets_available partitions
queue_state queue_idle_since_seconds queue_messages_ready queue_messages_unacknowledged queue_messages
queue_messages_ready_ram queue_messages_unacknowledged_ram queue_messages_ram queue_messages_persistent
queue_message_bytes queue_message_bytes_ready queue_message_bytes_unacknowledged queue_message_bytes_ram
queue_message_bytes_persistent queue_consumers queue_consumer_utilisation queue_memory queue_head_message_timestamp
queue_gc_min_heap queue_gc_min_vheap queue_gc_collections_before_fullsweep queue_slaves_nodes_len
queue_synchronised_slave_nodes_len queue_member_nodes_len queue_online_nodes_len queue_messages_publish_rate
queue_messages_deliver_no_ack_rate queue_messages_deliver_rate queue_max_length_bytes queue_max_length
queue_disk_reads_total queue_disk_writes_total queue_messages_published_total queue_messages_confirmed_total
queue_messages_delivered_total queue_messages_delivered_noack_total queue_messages_get_total
queue_messages_get_noack_total queue_messages_redelivered_total queue_messages_returned_total
queue_messages_ack_total queue_reductions_total queue_gc_minor_collections_total
connection_status connection_channels connection_received_bytes connection_received_packets connection_send_bytes
connection_send_packets connection_send_pending
memory_allocated_unused_bytes memory_atom_bytes memory_binary_bytes memory_code_bytes
memory_connection_channels_bytes memory_connection_other_bytes memory_connection_readers
memory_connection_writers_bytes memory_metrics_bytes memory_mgmt_db_bytes memory_mnesia_bytes
memory_msg_index_bytes memory_other_ets_bytes memory_other_proc_bytes memory_other_system_bytes
memory_plugins_bytes memory_queue_procs_bytes memory_queue_slave_procs_bytes memory_reserved_unallocated_bytes
memory_total_allocated_bytes memory_total_rss_bytes memory_total_erlang_bytes
aliveness_info aliveness_test shovel_state federation_state
"""
"""Every name that v1.0.0 exports, read off its source."""


def made(snapshot, names, **more):
    """Name of the metric -> its samples, under a setting."""
    found = {}
    for collector in collectors_for(names, **more).values():
        metrics = list(collector.collect([snapshot], select_all([snapshot])))
        check_declared(metrics, collector.specs)
        found.update({metric.samples[0].name: metric.samples for metric in metrics})
    return found


def test_every_name_of_it_is_made_or_left_out_with_a_reason():
    """None is forgotten, and none is invented."""
    ours = [old.spec.name.removeprefix("rabbitmq_") for old in OLD_METRICS]

    assert sorted(ITS_NAMES.split()) == sorted([*ours, *(left.name for left in NOT_PROVIDED)])
    assert all(left.why for left in NOT_PROVIDED)


def test_what_is_named_instead_exists():
    """A name that a reader is sent to is a metric of ours."""
    declared = {spec.name for specs in page.sections().values() for spec in specs}
    named = {old.instead for old in OLD_METRICS} | {name for left in NOT_PROVIDED for name in left.instead.split(", ")}

    assert set() == {name for name in named if name and name.partition("{")[0] not in declared}


def test_all_of_them_are_made_of_a_cluster_that_reports_everything():
    """The declarations and the collector agree."""
    snapshot = full()
    families = ended.collect([snapshot], select_all([snapshot]))

    assert {old.spec.name for old in OLD_METRICS} == check_declared(families, ended.SPECS)


def test_official_names_alone_are_the_default():
    """By default no metric appears twice."""
    assert COLLECTORS is collectors_for(MetricNames.OFFICIAL)


def test_both_adds_and_changes_nothing():
    """What official names make is there as before; rabbitmq_exporter's are there beside them."""
    official, both = made(full(), MetricNames.OFFICIAL), made(full(), MetricNames.BOTH)

    assert official == {name: samples for name, samples in both.items() if name in official}
    assert {"rabbitmq_queue_message_bytes", "rabbitmq_node_mem_used", "rabbitmq_up"} < set(both) - set(official)


def test_its_names_alone_take_the_place_of_the_official_ones():
    """A name that both use has rabbitmq_exporter's labels; ours that begin ackscope_ stay."""
    seen = made(full(), MetricNames.RABBITMQ_EXPORTER)
    (queue,) = [it for it in seen["rabbitmq_queue_messages"] if it.labels["queue"] == "orders"]

    assert ("cluster", "vhost", "queue", "durable", "policy", "self") == tuple(queue.labels)
    assert ("true", "cap", "lb") == (queue.labels["durable"], queue.labels["policy"], queue.labels["self"])
    assert {name for name in seen if not name.startswith("ackscope_")} <= {old.spec.name for old in OLD_METRICS}
    assert "ackscope_queues" in seen
    assert seen["rabbitmq_uptime"][0].value == 1000 * full().nodes.value[0].uptime_seconds


@pytest.mark.parametrize("names", list(MetricNames))
def test_promtool_has_nothing_against_any_of_them(names):
    """No name has two type lines."""
    snapshot = full()
    collectors = collectors_for(names, with_detailed=True).values()
    text = render(metric for it in collectors for metric in it.collect([snapshot], select_all([snapshot])))

    # promtool objects to two of its names, which cannot be changed here.
    assert [] == [line for line in promtool(text).splitlines() if names is MetricNames.OFFICIAL or "counter" in line]


def test_there_are_no_false_zeros():
    """A queue that reported nothing but its messages has no counter, where rabbitmq_exporter wrote 0."""
    bare = (Queue(vhost="/", name="bare", messages=3),)
    seen = made(small(queues=part(bare)), MetricNames.RABBITMQ_EXPORTER)

    assert seen["rabbitmq_queue_messages"][0].value == 3
    assert "rabbitmq_queue_messages_published_total" not in seen
    assert "rabbitmq_queue_disk_reads_total" not in seen


def test_a_family_that_could_not_be_read_is_down():
    """The last good reading is shown, and module_up says that it is an old one."""
    broken = small(queues=Part(value=(), error="503"))
    seen = made(broken, MetricNames.RABBITMQ_EXPORTER)
    modules = {it.labels["module"]: it.value for it in seen["rabbitmq_module_up"]}

    assert (0, 1) == (modules["queue"], modules["overview"])
    assert seen["rabbitmq_up"][0].value == 0


def test_the_remainder_keeps_its_sums_right():
    """Queues without series of their own are in one, as under the official names."""
    chosen = SelectedObjects(shown=(), omitted=5, remainder={"messages": 12, "stats.publish": 3})
    selection = Selection(clusters={"shop": ClusterSelection(queues=chosen)})
    found = {metric.samples[0].name: metric.samples for metric in ended.collect([small()], selection)}
    more = {metric.samples[0].name: metric.samples for metric in detailed.collect([small()], selection)}

    assert [("(other)", 12)] == [(it.labels["queue"], it.value) for it in found["rabbitmq_queue_messages"]]
    assert [("(other)", 12)] == [(it.labels["queue"], it.value) for it in more["rabbitmq_detailed_queue_messages"]]
    assert found["rabbitmq_queue_messages_published_total"][0].value == 3
    assert not {old.spec.name for old in QUEUES} & set(found) - {
        "rabbitmq_queue_messages",
        "rabbitmq_queue_messages_published_total",
    }


def test_detailed_names_are_there_where_they_are_requested():
    """The operator's queue dashboard asks for these."""
    seen = made(full(), MetricNames.OFFICIAL, with_detailed=True)

    assert {spec.name for spec in detailed.SPECS} <= set(seen)
    assert not {spec.name for spec in detailed.SPECS} & set(made(full(), MetricNames.OFFICIAL))
