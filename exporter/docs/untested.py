"""Why a small broker of one node cannot make a metric move, for those whose declaration does not say it itself."""

from collections.abc import Mapping

from exporter.exposition.specs import Spec

_TWO_NODES = "it takes two nodes"
_SETTING = "it is a setting, told once for the object and never changed"
_OF_NODE = "it is a limit that the node has from its start on"
_FAILS = "it takes a broker that does not answer, which tests/integration/exporter/test_outage.py has"

_QUICK = "it is over within milliseconds, and the broker tells its figures every 5 seconds"
_LOADED = "a node that has started has loaded most of what it needs"

_DEFECT = "it takes a defect of ours"
_LOSES = "it takes a broker that loses, doubles or reorders messages"
_ALLOCATED = "it is 0 while the runtime counts more memory as used than its allocators do, as on a fresh node"

UNTESTED: Mapping[str, str] = {
    "ackscope_cluster_nodes_unreachable": _TWO_NODES,
    "ackscope_node_running": _TWO_NODES,
    "ackscope_queue_member_online": _TWO_NODES,
    "ackscope_queue_members": _TWO_NODES,
    "ackscope_queue_members_online": _TWO_NODES,
    "ackscope_queue_mirrors": _TWO_NODES,
    "ackscope_queue_mirrors_synchronised": _TWO_NODES,
    "ackscope_queues_replication": _TWO_NODES,
    "rabbitmq_queue_member_nodes_len": _TWO_NODES,
    "rabbitmq_queue_online_nodes_len": _TWO_NODES,
    "rabbitmq_queue_slaves_nodes_len": _TWO_NODES,
    "rabbitmq_queue_synchronised_slave_nodes_len": _TWO_NODES,
    "rabbitmq_running": _TWO_NODES,
    "ackscope_node_partitions": _TWO_NODES,
    "rabbitmq_partitions": _TWO_NODES,
    "rabbitmq_memory_stream_replica_reader_erlang_process_bytes": _TWO_NODES,
    "rabbitmq_cluster_vhost_status": "a virtual host stops when its node is damaged",
    "rabbitmq_queue_state": "a queue that does not run takes a node that fails",
    "ackscope_connection_connected_timestamp_seconds": "it stands still while the connection lives",
    "ackscope_consumer_acknowledges": _SETTING,
    "ackscope_consumer_prefetch_messages": _SETTING,
    "ackscope_consumer_timeout_seconds": _SETTING,
    "ackscope_deprecated_feature_permitted": "it is a setting in the configuration file of the broker",
    "ackscope_feature_flag_enabled": "a new broker has all flags enabled that it can, and none can be disabled",
    "ackscope_prefetch_unlimited_consumers": "4.0 and later do not tell the limit of a whole channel: 0 or nothing",
    "ackscope_queue_details_timestamp_seconds": "a small broker is read in full every time",
    "rabbitmq_connection_pending_packets": "it takes a client that does not read what it is sent",
    "rabbitmq_connection_send_pending": "it takes a client that does not read what it is sent",
    "rabbitmq_erlang_net_ticktime_seconds": _OF_NODE,
    "rabbitmq_erlang_processes_limit": _OF_NODE,
    "rabbitmq_process_max_fds": _OF_NODE,
    "rabbitmq_process_max_tcp_sockets": _OF_NODE,
    "rabbitmq_fd_available": _OF_NODE,
    "rabbitmq_sockets_available": _OF_NODE,
    "rabbitmq_io_reopen_ops_total": "it takes a node that runs short of file descriptors",
    "rabbitmq_channel_messages_unconfirmed": _QUICK,
    "ackscope_channel_pending_raft_commands": _QUICK,
    "rabbitmq_queue_gc_collections_before_fullsweep": _SETTING,
    "rabbitmq_queue_gc_min_heap": _SETTING,
    "rabbitmq_queue_gc_min_vheap": _SETTING,
    "ackscope_memory_part_bytes": _TWO_NODES,
    "rabbitmq_memory_queue_slave_procs_bytes": _TWO_NODES,
    "rabbitmq_memory_atom_bytes": _LOADED,
    "rabbitmq_memory_atom_table_bytes": _LOADED,
    "rabbitmq_memory_code_bytes": _LOADED,
    "rabbitmq_memory_code_module_bytes": _LOADED,
    "rabbitmq_memory_modern_metadata_store_ets_table_bytes": "a new 4.0 does not use Khepri; 4.3 makes it move",
    "rabbitmq_memory_stream_coordinator_erlang_process_bytes": "a coordinator that idles keeps its memory",
    "rabbitmq_memory_allocated_unused_bytes": _ALLOCATED,
    "rabbitmq_memory_runtime_allocated_unused_bytes": _ALLOCATED,
    "rabbitmq_queue_messages_paged_out": "it takes more messages than fit into memory",
    "rabbitmq_queue_messages_paged_out_bytes": "it takes more messages than fit into memory",
    "rabbitmq_up": _FAILS,
    "rabbitmq_module_up": _FAILS,
    # Ours: of the probes, the exporter, its files.
    "ackscope_confirm_layer_seconds": "it takes a whole minute of undisturbed confirms",
    "ackscope_confirm_sync_interval_seconds": "it takes a disk so slow that acks come in batches",
    "ackscope_delivery_duplicates_total": _LOSES,
    "ackscope_delivery_missing_total": _LOSES,
    "ackscope_delivery_out_of_order_total": _LOSES,
    "ackscope_prefetch_limit": _SETTING,
    "ackscope_prefetch_unacked_messages": "the probe's own consumer keeps up with what it is sent",
    "ackscope_probe_doubtful": "it takes a machine so busy that the probes are late",
    "ackscope_probe_process_bad_lines_total": _DEFECT,
    "ackscope_diagnosis_errors_total": _DEFECT,
    "ackscope_collector_success": _DEFECT,
    "ackscope_landing_defects_total": _DEFECT,
    "ackscope_decode_gaps": "it takes a broker that answers with fields that cannot be read",
    "ackscope_dropped_findings": "it takes more findings than the cap allows, 500 as a rule",
    "ackscope_landing_errors_total": "it takes a disk that refuses to be written to",
    "ackscope_landing_dropped_rows_total": "it takes a disk that is too slow for what is landed",
    "ackscope_landing_expired_files_total": "files are kept for days",
    "ackscope_landing_expired_bytes_total": "files are kept for days",
    "ackscope_poll_budget_ratio": "it is a setting, or follows a broker of more queues than the lab's",
    "ackscope_poll_full_reading": "a small broker is read in full every time",
}
"""Metric -> the reason."""


def untested_reason(spec: Spec) -> str:
    """The reason why a small broker of one node cannot make it appear or move; "" where it can."""
    return spec.untested or UNTESTED.get(spec.name, "")
