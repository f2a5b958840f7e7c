"""Values of overview, nodes, memory, health, certificates, features and logins, for a handmade cluster."""

from dataclasses import replace

from ackscope.snapshot import Alarm, Channel, HealthCheck, MessageStats, Node
from ackscope.topology import NodeMemory
from exporter.exposition.cardinality.selection import ClusterSelection, QueueTotals, Selection
from exporter.exposition.cardinality.top_k import select_all
from exporter.exposition.collectors import auth, certificates, features, health, memory, nodes, overview
from tests.unit.exporter.full import ONE, full
from tests.unit.exporter.made import part


def values(collect, snapshot, selection=None):
    """Metric name and label values (without the cluster) -> value."""
    return {
        (sample.name, *list(sample.labels.values())[1:]): sample.value
        for metric in collect([snapshot], selection or select_all([snapshot]))
        for sample in metric.samples
    }


def test_publishers_are_the_channels_that_have_published():
    """Others only consume, or do nothing."""
    some = (Channel(name="a", stats=MessageStats(publish=1)), Channel(name="b", stats=MessageStats(ack=1)))

    assert values(overview.collect, full(channels=part(some)))[("rabbitmq_global_publishers",)] == 1


def test_publishers_are_not_reported_where_the_broker_has_no_rates():
    """Then no channel shows what it published: 0 would be wrong."""
    whole = full()
    without = full(overview=part(replace(whole.overview.value, rates_mode="none")))

    assert ("rabbitmq_global_publishers",) in values(overview.collect, whole)
    assert ("rabbitmq_global_publishers",) not in values(overview.collect, without)


def test_routed_messages_are_added_up_over_the_types_of_queues():
    """They do not fall when a queue is deleted; they count since the start of the exporter."""
    totals = QueueTotals(counts={"classic": {"stats.publish": 5}, "quorum": {"stats.publish": 2}, "stream": {}})
    selection = Selection(clusters={"shop": ClusterSelection(totals=totals)})

    assert values(overview.collect, full(), selection)[("rabbitmq_global_messages_routed_total",)] == 7
    nothing = Selection(clusters={"shop": ClusterSelection()})
    assert ("rabbitmq_global_messages_routed_total",) not in values(overview.collect, full(), nothing)


def test_dashboards_can_join_on_the_identity():
    """The official ones pick the endpoint by this label."""
    snapshot = full(nodes=part((Node(name=ONE, running=True),)))

    assert values(overview.collect, snapshot)["rabbitmq_identity_info", ONE, "rabbit@shop", "aggregated"] == 1


def test_the_time_of_reads_is_that_of_one_times_their_number():
    """The time is in whole microseconds; otherwise the counter could fall by a rounding error."""
    busy = (Node(name=ONE, running=True, io_read_count=3, io_read_avg_time=0.1, io_write_count=3),)
    seen = values(nodes.collect, full(nodes=part(busy)))

    assert seen["rabbitmq_io_read_time_seconds_total", ONE] == 0.3
    assert ("rabbitmq_io_write_time_seconds_total", ONE) not in seen


def test_nodes_that_do_not_run_are_counted_when_all_say():
    """If one node does not report its state, the number is absent."""
    unknown = (Node(name="a", running=False), Node(name="b"))

    assert values(nodes.collect, full())[("ackscope_cluster_nodes_unreachable",)] == 1
    assert ("ackscope_cluster_nodes_unreachable",) not in values(nodes.collect, full(nodes=part(unknown)))


def test_memory_has_the_names_of_the_official_breakdown():
    """A part without an official name has a name of ours."""
    some = (NodeMemory(node=ONE, parts={"queue_procs": 5, "queue_slave_procs": 7}, rss=100),)
    seen = values(memory.collect, full(memory=part(some)))

    assert seen["rabbitmq_memory_classic_queue_erlang_process_bytes", ONE] == 5
    assert seen["ackscope_memory_part_bytes", ONE, "queue_slave_procs"] == 7
    assert seen["ackscope_memory_total_bytes", ONE, "rss"] == 100
    assert ("ackscope_memory_total_bytes", ONE, "erlang") not in seen


def alarms(*there, ok=False, version="4.0.5"):
    """Return the alarm series of a cluster with this check."""
    check = HealthCheck(name="alarms", ok=ok, alarms=there)
    return values(health.collect, full(version=version, health=part((check,))))


def test_alarms_that_are_not_in_force_are_zero():
    """Every running node has a 0 once the check was read."""
    seen = alarms(Alarm(node=ONE, resource="memory"))

    assert seen["ackscope_alarm", ONE, "memory"] == 1
    assert seen["ackscope_alarm", ONE, "disk"] == 0


def test_a_check_that_fails_without_naming_an_alarm_gives_no_zeros():
    """An unknown problem is in force."""
    seen = alarms()

    assert seen["ackscope_health_check", "alarms"] == 0
    assert not [key for key in seen if key[0] == "ackscope_alarm"]


def test_each_check_reports_when_the_broker_answered_it():
    """A reused check has an earlier time than the reading; a check that could not be read has none."""
    checks = (
        HealthCheck(name="alarms", ok=True),
        HealthCheck(name="virtual-hosts", ok=True, age=20.0),
        HealthCheck(name="is-in-service", ok=None),
    )
    read = part(checks)
    seen = values(health.collect, full(health=read))

    times = {key[1]: value for key, value in seen.items() if key[0] == "ackscope_health_check_asked_timestamp_seconds"}
    assert {"alarms": read.at.wall, "virtual-hosts": read.at.wall - 20} == times


def test_the_alarm_of_file_descriptors_ends_with_4_3():
    """Newer brokers have no such alarm; 0 would say that it exists and is off."""
    assert alarms(ok=True)["rabbitmq_alarms_file_descriptor_limit", ONE] == 0
    assert ("rabbitmq_alarms_file_descriptor_limit", ONE) not in alarms(ok=True, version="4.3.6")


def test_of_several_certificates_the_first_to_end_counts():
    """The certificate of a chain that expires first counts for the listener."""
    assert {("ackscope_certificate_expiry_timestamp_seconds", ONE, "amqps", "5671"): 1.9e9} == values(
        certificates.collect, full()
    )


def test_features_are_reported_by_what_an_upgrade_asks():
    """Flags that are not enabled yet, deprecated features that are used."""
    assert {
        ("ackscope_feature_flag_enabled", "khepri_db", "stable"): 0,
        ("ackscope_deprecated_feature_in_use", "global_qos", "permitted_by_default"): 1,
        ("ackscope_deprecated_feature_permitted", "global_qos", "permitted_by_default"): 1,
    } == values(features.collect, full())


def test_logins_are_counted_by_node_and_protocol():
    """Refused ones among them."""
    seen = values(auth.collect, full())

    assert seen["rabbitmq_auth_attempts_total", ONE, "amqp091"] == 5
    assert seen["rabbitmq_auth_attempts_failed_total", ONE, "amqp091"] == 2
