"""Table of every metric of kbudde/rabbitmq_exporter v1.0.0: its source here, and the official metric of today.

The collector, the migration page and the tests use it.
"""

from dataclasses import dataclass

from exporter.exposition.collectors.memory import PARTS
from exporter.exposition.specs import Spec, counter, gauge, only_in

SELF = "lb"
"""Constant value of the label `self`.

rabbitmq_exporter uses it if one exporter reads a whole cluster through one address. Its other values, "1" and "0", told
whether an object was on the node that answered, so behind a load balancer the series changed with every response.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldMetric:
    """One metric of rabbitmq_exporter.

    Attributes:
        spec: the declaration, with rabbitmq_exporter's name, type and labels.
        path: attribute of the snapshot object with the value.
        instead: the official metric of today; "" if there is none.
        note: differences to rabbitmq_exporter.
    """

    spec: Spec
    path: str
    instead: str = ""
    note: str = ""


def _table(text: str, source: str, *labels: str) -> tuple[OldMetric, ...]:
    """Parse lines of `name | path | instead | until | note`; the last three are optional.

    Names that end in `_total` are counters.

    `until` is the first version of RabbitMQ without the metric, such as 4.0.
    """
    found = []
    for line in text.strip().splitlines():
        name, path, instead, until, note, *_ = (*(cell.strip() for cell in line.split("|")), "", "", "")
        if path.startswith("rates."):
            note = "a rate computed by the broker"
        if until:
            note = f"before {until} only" + (f": {note}" if note else "")
        make = counter if name.endswith("_total") else gauge
        words = f"Name in rabbitmq_exporter of {instead}." if instead else "Name from rabbitmq_exporter."
        more = f" {note[0].upper()}{note[1:]}." if note else ""
        spec = make(f"rabbitmq_{name}", words + more, f"{source} {path}", *labels)
        if until:
            major, minor = map(int, until.split("."))
            spec = only_in(spec, until=(major, minor))
        found.append(OldMetric(spec=spec, path=path, instead=instead, note=note))
    return tuple(found)


OVERVIEW = _table(
    """
    channels | channels | rabbitmq_channels
    connections | connections | rabbitmq_connections
    consumers | consumers | rabbitmq_consumers
    queues | queues | rabbitmq_queues
    exchanges | exchanges | ackscope_cluster_exchanges
    queue_messages_global | messages | ackscope_cluster_messages
    queue_messages_ready_global | messages_ready | ackscope_cluster_messages_ready
    queue_messages_unacknowledged_global | messages_unacked | ackscope_cluster_messages_unacked
    messages_publish_rate | rates.publish | rabbitmq_global_messages_received_total
    messages_deliver_no_ack_rate | rates.deliver_no_ack | rabbitmq_global_messages_delivered_consume_auto_ack_total
    messages_deliver_rate | rates.deliver | rabbitmq_global_messages_delivered_consume_manual_ack_total
    """,
    "/api/overview",
    "cluster",
)

EXCHANGES = _table(
    """
    exchange_messages_published_in_total | stats.publish_in | rabbitmq_exchange_messages_published_total
    exchange_messages_published_out_total | stats.publish_out | ackscope_exchange_messages_routed_total
    """,
    "/api/exchanges",
    "cluster",
    "vhost",
    "exchange",
)

NODES = _table(
    """
    uptime | uptime_seconds | rabbitmq_erlang_uptime_seconds |  | was in milliseconds, is in seconds
    running | running | ackscope_node_running
    node_mem_used | mem_used | rabbitmq_process_resident_memory_bytes
    node_mem_limit | mem_limit | rabbitmq_resident_memory_limit_bytes
    node_mem_alarm | mem_alarm | rabbitmq_alarms_memory_used_watermark
    node_disk_free | disk_free | rabbitmq_disk_space_available_bytes
    node_disk_free_alarm | disk_free_alarm | rabbitmq_alarms_free_disk_space_watermark
    node_disk_free_limit | disk_free_limit | rabbitmq_disk_space_available_limit_bytes
    fd_used | fd_used | rabbitmq_process_open_fds
    fd_available | fd_total | rabbitmq_process_max_fds |  | the limit, not what is free
    sockets_used | sockets_used | rabbitmq_process_open_tcp_sockets | 4.0 | constant zeros since
    sockets_available | sockets_total | rabbitmq_process_max_tcp_sockets | 4.0 | constant zeros since
    partitions | partitions | ackscope_node_partitions | 4.3 | removed since
    """,
    "/api/nodes",
    "cluster",
    "node",
    "self",
)

QUEUES = _table(
    """
    queue_messages | messages | rabbitmq_queue_messages
    queue_messages_ready | messages_ready | rabbitmq_queue_messages_ready
    queue_messages_unacknowledged | messages_unacked | rabbitmq_queue_messages_unacked
    queue_messages_ram | messages_ram | rabbitmq_queue_messages_ram
    queue_messages_ready_ram | messages_ready_ram | rabbitmq_queue_messages_ready_ram
    queue_messages_unacknowledged_ram | messages_unacked_ram | rabbitmq_queue_messages_unacked_ram
    queue_messages_persistent | messages_persistent | rabbitmq_queue_messages_persistent
    queue_message_bytes | message_bytes | rabbitmq_queue_messages_bytes
    queue_message_bytes_ready | message_bytes_ready | rabbitmq_queue_messages_ready_bytes
    queue_message_bytes_unacknowledged | message_bytes_unacked | rabbitmq_queue_messages_unacked_bytes
    queue_message_bytes_ram | message_bytes_ram | rabbitmq_queue_messages_ram_bytes
    queue_message_bytes_persistent | message_bytes_persistent | rabbitmq_queue_messages_persistent_bytes
    queue_consumers | consumers | rabbitmq_queue_consumers
    queue_consumer_utilisation | consumer_utilisation | rabbitmq_queue_consumer_utilisation |  | classic queues only
    queue_memory | memory | rabbitmq_queue_process_memory_bytes
    queue_head_message_timestamp | head_message_timestamp | rabbitmq_queue_head_message_timestamp || classic queues only
    queue_idle_since_seconds | idle_since |  | 3.13
    queue_gc_min_heap | garbage_collection.min_heap_size |  | 3.13
    queue_gc_min_vheap | garbage_collection.min_bin_vheap_size |  | 3.13
    queue_gc_collections_before_fullsweep | garbage_collection.fullsweep_after |  | 3.13
    queue_gc_minor_collections_total | garbage_collection.minor_gcs |  | 3.13
    queue_slaves_nodes_len | mirrors | ackscope_queue_mirrors | 4.0 | mirrors were removed
    queue_synchronised_slave_nodes_len | synchronised_mirrors | ackscope_queue_mirrors_synchronised | 4.0
    queue_member_nodes_len | members | ackscope_queue_members
    queue_online_nodes_len | online | ackscope_queue_members_online
    queue_messages_publish_rate | rates.publish | rabbitmq_queue_messages_published_total
    queue_messages_deliver_no_ack_rate | rates.deliver_no_ack | rabbitmq_queue_messages_delivered_total
    queue_messages_deliver_rate | rates.deliver | rabbitmq_queue_messages_delivered_ack_total
    queue_max_length | setting.max-length | ackscope_queue_max_length_messages
    queue_max_length_bytes | setting.max-length-bytes | ackscope_queue_max_length_bytes
    queue_messages_published_total | stats.publish | rabbitmq_queue_messages_published_total
    queue_messages_delivered_total | stats.deliver | rabbitmq_queue_messages_delivered_ack_total |  | another count now
    queue_messages_delivered_noack_total | stats.deliver_no_ack | rabbitmq_queue_messages_delivered_total
    queue_messages_get_total | stats.get | rabbitmq_queue_get_ack_total
    queue_messages_get_noack_total | stats.get_no_ack | rabbitmq_queue_get_total
    queue_messages_redelivered_total | stats.redeliver | rabbitmq_queue_messages_redelivered_total
    queue_messages_ack_total | stats.ack | rabbitmq_queue_messages_acked_total
    queue_reductions_total | reductions | rabbitmq_queue_process_reductions_total
    """,
    "/api/queues",
    "cluster",
    "vhost",
    "queue",
    "durable",
    "policy",
    "self",
)

CONNECTIONS = _table(
    """
    connection_channels | channels | rabbitmq_connection_channels
    connection_received_bytes | recv_oct | rabbitmq_connection_incoming_bytes_total
    connection_received_packets | recv_cnt | rabbitmq_connection_incoming_packets_total
    connection_send_bytes | send_oct | rabbitmq_connection_outgoing_bytes_total
    connection_send_packets | send_cnt | rabbitmq_connection_outgoing_packets_total
    connection_send_pending | send_pend | rabbitmq_connection_pending_packets
    """,
    "/api/connections",
    "cluster",
    "vhost",
    "node",
    "peer_host",
    "user",
    "self",
)


def _part(part: str) -> str:
    return PARTS[part].name if part in PARTS else "ackscope_memory_part_bytes"


_REMOVED = {"mnesia": "4.3", "queue_slave_procs": "4.0 | mirrors were removed"}

MEMORY = _table(
    "\n".join(
        f"memory_{part}{suffix} | {part} | {_part(part)} | {_REMOVED.get(part, '')}"
        for part, suffix in (
            ("allocated_unused", "_bytes"),
            ("atom", "_bytes"),
            ("binary", "_bytes"),
            ("code", "_bytes"),
            ("connection_channels", "_bytes"),
            ("connection_other", "_bytes"),
            ("connection_readers", ""),
            ("connection_writers", "_bytes"),
            ("metrics", "_bytes"),
            ("mgmt_db", "_bytes"),
            ("mnesia", "_bytes"),
            ("msg_index", "_bytes"),
            ("other_ets", "_bytes"),
            ("other_proc", "_bytes"),
            ("other_system", "_bytes"),
            ("plugins", "_bytes"),
            ("queue_procs", "_bytes"),
            ("queue_slave_procs", "_bytes"),
            ("reserved_unallocated", "_bytes"),
        )
    ),
    "/api/nodes/<node>/memory",
    "cluster",
    "node",
    "self",
)
MEMORY_TOTALS = _table(
    """
    memory_total_allocated_bytes | allocated | ackscope_memory_total_bytes{by="allocated"}
    memory_total_rss_bytes | rss | ackscope_memory_total_bytes{by="rss"}
    memory_total_erlang_bytes | erlang | ackscope_memory_total_bytes{by="erlang"}
    """,
    "/api/nodes/<node>/memory",
    "cluster",
    "node",
    "self",
)


def _one(text: str, source: str, *labels: str) -> OldMetric:
    return _table(text, source, *labels)[0]


UP = _one("up | error | ackscope_poll_success | | the last reading of every family", "polls", "cluster", "node")
MODULE_UP = _one("module_up | error | ackscope_poll_success | | one family", "polls", "cluster", "node", "module")
MODULE_SECONDS = _one(
    "module_scrape_duration_seconds | seconds | ackscope_poll_duration_seconds |", "polls", "cluster", "node", "module"
)
VERSION = _one(
    "version_info | rabbitmq_version, erlang_version | rabbitmq_build_info | | always 1",
    "/api/overview",
    "rabbitmq",
    "erlang",
    "node",
    "cluster",
)
QUEUE_STATE = _one(
    "queue_state | state | ackscope_queue_info | | 1 for running, 0 for any other state",
    "/api/queues",
    *QUEUES[0].spec.labels,
    "state",
)
CONNECTION_STATUS = _one(
    "connection_status | state | ackscope_connections | | number of connections in the state",
    "/api/connections",
    "cluster",
    "vhost",
    "node",
    "peer_host",
    "user",
    "state",
    "self",
)
SHOVEL = _one(
    'shovel_state | state | ackscope_link_state{kind="shovel"} |  | always 1',
    "/api/shovels",
    "cluster",
    "vhost",
    "shovel",
    "type",
    "self",
    "state",
)
FEDERATION = _one(
    'federation_state | state | ackscope_link_state{kind="federation"} |  | always 1; with the upstream as a label',
    "/api/federation-links",
    "cluster",
    "vhost",
    "node",
    "queue",
    "exchange",
    "upstream",
    "self",
    "status",
)

OLD_METRICS: tuple[OldMetric, ...] = (
    UP,
    MODULE_UP,
    MODULE_SECONDS,
    VERSION,
    *OVERVIEW,
    *EXCHANGES,
    *NODES,
    *QUEUES,
    QUEUE_STATE,
    *CONNECTIONS,
    CONNECTION_STATUS,
    *MEMORY,
    *MEMORY_TOTALS,
    SHOVEL,
    FEDERATION,
)
"""All provided metrics, in the order of rabbitmq_exporter's modules."""
