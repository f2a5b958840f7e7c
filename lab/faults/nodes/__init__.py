"""Faults of nodes and their machines (D)."""

from lab.faults.fault import FaultSpec
from lab.faults.nodes import (
    broker_down,
    cpu_saturation,
    disk_alarm,
    disk_limit_unsafe,
    disk_trending_full,
    erlang_process_limit,
    fd_exhaustion,
    hung_node,
    listener_missing,
    management_overload,
    memory_alarm,
    memory_fragmentation,
    memory_near_limit,
    node_restarted,
    slow_disk,
    tls_certificate_expiry,
    vhost_down,
)

FAULTS: tuple[FaultSpec, ...] = (
    memory_alarm.SPEC,
    disk_alarm.SPEC,
    hung_node.SPEC,
    fd_exhaustion.SPEC,
    erlang_process_limit.SPEC,
    vhost_down.SPEC,
    listener_missing.SPEC,
    broker_down.SPEC,
    slow_disk.SPEC,
    cpu_saturation.SPEC,
    memory_near_limit.SPEC,
    memory_fragmentation.SPEC,
    disk_trending_full.SPEC,
    disk_limit_unsafe.SPEC,
    node_restarted.SPEC,
    management_overload.SPEC,
    tls_certificate_expiry.SPEC,
)
