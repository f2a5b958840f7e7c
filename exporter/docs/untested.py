"""Reasons why a small single-node broker cannot make a metric appear or change.

A reason in the declaration of the metric takes precedence.
"""

from collections.abc import Mapping

from exporter.exposition.specs import Spec

_TWO_NODES = "needs two nodes"
_SETTING = "a setting, reported once for the object and never changed"
_OF_NODE = "a limit that the node has from its start"
_FAILS = "needs a broker that does not answer, as in tests/integration/exporter/test_outage.py"

_QUICK = "over within milliseconds, while the broker refreshes its statistics every 5 seconds"
_LOADED = "a started node has loaded most of what it needs"

_BUCKET = "needs object storage, as in tests/integration/exporter/test_bucket.py"
_DEFECT = "needs a bug in ackscope"
_LOSES = "needs a broker that loses, duplicates or reorders messages"
_ALLOCATED = "0 while the runtime counts more memory as used than its allocators do, as on a fresh node"

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
    "rabbitmq_cluster_vhost_status": "a virtual host only stops if its node is damaged",
    "rabbitmq_queue_state": "a queue only stops if a node fails",
    "ackscope_connection_connected_timestamp_seconds": "constant while the connection lives",
    "ackscope_consumer_acknowledges": _SETTING,
    "ackscope_consumer_prefetch_messages": _SETTING,
    "ackscope_consumer_timeout_seconds": _SETTING,
    "ackscope_deprecated_feature_permitted": "a setting in the broker's configuration file",
    "ackscope_feature_flag_enabled": "a new broker has all flags enabled that it can, and none can be disabled",
    "ackscope_prefetch_unlimited_consumers": "4.0 and later do not report a channel's prefetch limit: 0 or no sample",
    "ackscope_queue_details_timestamp_seconds": "a small broker is read in full at every poll",
    "rabbitmq_connection_pending_packets": "needs a client that does not read its socket",
    "rabbitmq_connection_send_pending": "needs a client that does not read its socket",
    "rabbitmq_erlang_net_ticktime_seconds": _OF_NODE,
    "rabbitmq_erlang_processes_limit": _OF_NODE,
    "rabbitmq_process_max_fds": _OF_NODE,
    "rabbitmq_process_max_tcp_sockets": _OF_NODE,
    "rabbitmq_fd_available": _OF_NODE,
    "rabbitmq_sockets_available": _OF_NODE,
    "rabbitmq_io_reopen_ops_total": "needs a node that runs short of file descriptors",
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
    "rabbitmq_memory_modern_metadata_store_ets_table_bytes": "a new 4.0 does not use Khepri; it changes on 4.3",
    "rabbitmq_memory_stream_coordinator_erlang_process_bytes": "an idle coordinator keeps its memory",
    "rabbitmq_memory_allocated_unused_bytes": _ALLOCATED,
    "rabbitmq_memory_runtime_allocated_unused_bytes": _ALLOCATED,
    "rabbitmq_queue_messages_paged_out": "needs more messages than fit into memory",
    "rabbitmq_queue_messages_paged_out_bytes": "needs more messages than fit into memory",
    "rabbitmq_up": _FAILS,
    "rabbitmq_module_up": _FAILS,
    # Metrics of ackscope itself: probes, exporter, landing files.
    "ackscope_confirm_layer_seconds": "needs a whole minute of undisturbed confirms",
    "ackscope_confirm_sync_interval_seconds": "needs a disk so slow that acks come in batches",
    "ackscope_delivery_duplicates_total": _LOSES,
    "ackscope_delivery_missing_total": _LOSES,
    "ackscope_delivery_out_of_order_total": _LOSES,
    "ackscope_prefetch_limit": _SETTING,
    "ackscope_prefetch_unacked_messages": "the probe's own consumer keeps up with its deliveries",
    "ackscope_probe_doubtful": "needs a machine so busy that the probes are late",
    "ackscope_probe_process_bad_lines_total": _DEFECT,
    "ackscope_diagnosis_errors_total": _DEFECT,
    "ackscope_collector_success": _DEFECT,
    "ackscope_landing_defects_total": _DEFECT,
    "ackscope_decode_gaps": "needs a broker whose responses have unreadable fields",
    "ackscope_dropped_findings": "needs more findings than the limit, 500 by default",
    "ackscope_landing_uploaded_files_total": _BUCKET,
    "ackscope_landing_upload_errors_total": _BUCKET,
    "ackscope_landing_spooled_bytes": _BUCKET,
    "ackscope_landing_upload_lag_seconds": _BUCKET,
    "ackscope_landing_errors_total": "needs a disk that refuses writes",
    "ackscope_landing_dropped_rows_total": "needs a disk that is too slow for what is landed",
    "ackscope_landing_expired_files_total": "files are kept for days",
    "ackscope_landing_expired_bytes_total": "files are kept for days",
    "ackscope_poll_budget_ratio": "a setting, or follows a broker with more queues than the lab's",
    "ackscope_poll_full_reading": "a small broker is read in full at every poll",
}
"""Reason for each metric."""


def untested_reason(spec: Spec) -> str:
    """Return why a small single-node broker cannot make the metric appear or change; "" if it can."""
    return spec.untested or UNTESTED.get(spec.name, "")
