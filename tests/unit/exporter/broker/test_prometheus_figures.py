import pytest
from prometheus_client.parser import text_string_to_metric_families

from ackscope.second_source import QueueTypeTotals
from ackscope.snapshot import Node
from exporter.broker.prometheus.figures import WANTED, decode_figures
from exporter.broker.prometheus.samples import read_samples
from tests.unit.exporter.broker.server import FIXTURES, VERSIONS


def recorded_texts(version):
    """The answers of `/metrics` and `/metrics/detailed` of a broker without statistics, with three queues."""
    return [(FIXTURES / version / "prometheus" / f"{name}.txt").read_text() for name in ("metrics", "detailed")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", [0, 1])
def test_samples_equal_those_of_the_client_library(version, index):
    """Plain lines are not read by its parser, which is slow; the result is the same."""
    text = recorded_texts(version)[index]
    # The library adds the suffix of a counter where the plugin forgot it (stream_segments).
    parsed = [
        (name if name in WANTED else name.removesuffix("_total"), labels, float(value))
        for family in text_string_to_metric_families(text)
        for name, labels, value, *_ in family.samples
    ]
    expected = sorted(f"{name} {sorted(labels.items())} {value!r}" for name, labels, value in parsed if name in WANTED)

    found = sorted(f"{name} {sorted(labels.items())} {value!r}" for name, labels, value in read_samples(text, WANTED))

    assert expected == found
    assert len(found) > 20


def test_escaped_labels_and_timestamps_are_read():
    """Queue names may contain quotes, backslashes and braces."""
    text = 'm{queue="a\\"b\\\\c",vhost="/"} 1\nm{queue="{x}"} 2 1700000000000\nm{queue="plain,=}"} +Inf\n'

    found = sorted((sample.labels["queue"], sample.value) for sample in read_samples(text, {"m"}))

    assert [('a"b\\c', 1.0), ("plain,=}", float("inf")), ("{x}", 2.0)] == found


@pytest.mark.parametrize("text", ["<html>", "m{", 'm{a="b} 1', "m one"])
def test_other_text_is_an_error(text):
    """A web page is not taken for metrics without samples."""
    with pytest.raises(ValueError, match=r".*"):
        list(read_samples(text, {"m"}))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_has_its_resources(version):
    """The same figures as in the management API."""
    figures = decode_figures(recorded_texts(version))
    node = figures.node

    assert ("lab1@localhost", True, version) == (node.name, node.running, node.rabbitmq_version)
    assert 50e6 < node.mem_used < node.mem_limit
    assert (20000, 10_000_000, 2) == (node.fd_total, node.disk_free_limit, node.processors)
    assert (False, False, ()) == (node.mem_alarm, node.disk_free_alarm, figures.alarms)
    assert (node.sockets_total is not None) == (version == "3.10.8")
    assert {"connections": 2, "channels": 2, "consumers": 2} == figures.totals
    assert (60, 60, 10, 10) == (
        figures.stats.publish,
        figures.stats.confirm,
        figures.stats.deliver,
        figures.stats.deliver_get,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_queues_have_their_figures(version):
    """A classic and a quorum queue with a consumer that holds 5 messages, and a stream."""
    queues = decode_figures(recorded_texts(version)).queues

    assert {("/", "c"), ("/", "q"), ("/", "s")} == set(queues)
    for name in ("c", "q"):
        gauges = queues["/", name].gauges
        assert (20, 15, 5, 1) == tuple(
            gauges[key] for key in ("messages", "messages_ready", "messages_unacked", "consumers")
        )
    assert "head_message_timestamp" not in queues["/", "c"].gauges


@pytest.mark.parametrize("version", ["4.0.5", "4.3.6"])
def test_queues_are_counted_since_4_0(version):
    """The queue counts, not only the channel."""
    counters = decode_figures(recorded_texts(version)).queues["/", "c"].counters

    assert (20, 5, 0, 0) == tuple(counters[name] for name in ("publish", "deliver", "ack", "redeliver"))


def test_before_4_0_queues_are_not_counted():
    """The sum over channels would shrink with every channel that closes."""
    assert {} == decode_figures(recorded_texts("3.10.8")).queues["/", "c"].counters


def test_only_4_3_tells_types_and_leaders():
    """The queue knows its type in `queue_info`."""
    newest, older = (decode_figures(recorded_texts(version)).queues["/", "q"] for version in ("4.3.6", "4.0.5"))

    assert ("quorum", True) == (newest.type, newest.leads)
    assert (None, None) == (older.type, older.leads)


def test_metrics_of_something_else_are_refused():
    """Another exporter answers at the address."""
    assert decode_figures(["go_goroutines 7\n"]) is None


def test_absent_metrics_leave_fields_absent():
    """Absent is not zero."""
    text = (
        'rabbitmq_identity_info{rabbitmq_node="r@a",rabbitmq_cluster="c"} 1\nrabbitmq_alarms_memory_used_watermark 1\n'
    )

    figures = decode_figures([text])

    assert Node(name="r@a", running=True, mem_alarm=True) == figures.node
    assert figures.alarms is None
    assert ({}, {}) == (figures.totals, figures.queues)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e+30"])
def test_a_number_that_no_broker_can_have_is_absent(value):
    """As from the management API; a sum without one of its parts is unknown, and the others are read."""
    counter, alarm = "rabbitmq_global_messages_received_total", "rabbitmq_alarms_memory_used_watermark"
    metrics, detailed = recorded_texts("4.3.6")
    lines = [
        f"{line.rpartition(' ')[0]} {value}" if line.startswith((counter, alarm)) else line
        for line in metrics.split("\n")
    ]
    first = next(line for line in detailed.split("\n") if line.startswith("rabbitmq_detailed_queue_messages{"))
    damaged = detailed.replace(first, f"{first.rpartition(' ')[0]} {value}")

    known, found = decode_figures([metrics, detailed]), decode_figures(["\n".join(lines), damaged])

    assert (None, None) == (found.stats.publish, found.node.mem_alarm)
    assert known.stats.ack == found.stats.ack
    assert 1 == sum(
        found.queues[key].gauges != each.gauges and "messages" not in found.queues[key].gauges
        for key, each in known.queues.items()
    )


def test_what_amqp_1_0_clients_did_is_counted_by_protocol_and_type_of_queue():
    """Lines as of 4.0.5; those of other protocols and of queues with a dead-letter exchange are left out."""
    native = decode_figures([*recorded_texts("4.0.5"), _NATIVE]).native

    assert (70, 50, 3) == (native.received, native.awaited, native.unroutable)
    deleted = {"rejected": 6, "over_limit": 2, "expired": 4, "over_length": 11}
    assert QueueTypeTotals(delivered=40, accepted=12, redelivered=9, **deleted) == native.types["quorum"]
    assert {"/": {"q": 567}} == native.commands


_QUORUM = 'queue_type="rabbit_quorum_queue"'
_NATIVE = f"""
rabbitmq_global_messages_received_total{{protocol="amqp10"}} 70
rabbitmq_global_messages_received_total{{protocol="mqtt310"}} 9
rabbitmq_global_messages_received_confirm_total{{protocol="amqp10"}} 50
rabbitmq_global_messages_unroutable_returned_total{{protocol="amqp10"}} 3
rabbitmq_global_messages_delivered_total{{protocol="amqp10",{_QUORUM}}} 40
rabbitmq_global_messages_delivered_total{{protocol="amqp091",{_QUORUM}}} 99
rabbitmq_global_messages_acknowledged_total{{protocol="amqp10",{_QUORUM}}} 12
rabbitmq_global_messages_redelivered_total{{protocol="amqp10",{_QUORUM}}} 9
rabbitmq_global_messages_dead_lettered_rejected_total{{{_QUORUM},dead_letter_strategy="disabled"}} 6
rabbitmq_global_messages_dead_lettered_rejected_total{{{_QUORUM},dead_letter_strategy="at_most_once"}} 8
rabbitmq_global_messages_dead_lettered_delivery_limit_total{{{_QUORUM},dead_letter_strategy="disabled"}} 2
rabbitmq_global_messages_dead_lettered_expired_total{{{_QUORUM},dead_letter_strategy="disabled"}} 4
rabbitmq_global_messages_dead_lettered_expired_total{{{_QUORUM},dead_letter_strategy="at_least_once"}} 5
rabbitmq_global_messages_dead_lettered_maxlen_total{{{_QUORUM},dead_letter_strategy="disabled"}} 11
rabbitmq_detailed_raft_log_commit_index{{vhost="/",queue="q"}} 567
rabbitmq_detailed_raft_log_commit_index{{raft_cluster="rabbitmq_metadata"}} 4
"""


def test_exchanges_are_counted():
    """Each has a row for what it received, dropped and returned; a number that no broker can have is absent."""
    row = 'rabbitmq_detailed_exchange_messages_{}_total{{vhost="e\\"u",exchange="{}"}} {}\n'
    numbers = [
        ("published", "", 13),
        ("unroutable_dropped", "", 7),
        ("unroutable_returned", "", 2),
        ("published", "x", -1),
    ]
    text = 'rabbitmq_identity_info{rabbitmq_node="r@a",rabbitmq_cluster="c"} 1\n' + "".join(
        row.format(*each) for each in numbers
    )

    text += 'rabbitmq_cluster_exchange_name{vhost="e\\"u",exchange="x",type="topic"} 1\n'

    found = decode_figures([text])

    expected = {"publish_in": 13, "drop_unroutable": 7, "return_unroutable": 2}
    assert {('e"u', ""): expected, ('e"u', "x"): {}} == found.exchanges
    assert {('e"u', "x"): "topic"} == found.exchange_types
