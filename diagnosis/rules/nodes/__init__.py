"""Rules about nodes and what they run on (D)."""

from diagnosis.contract import Rule
from diagnosis.rules.nodes import (
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

RULES: tuple[Rule, ...] = (
    memory_alarm.RULE,
    disk_alarm.RULE,
    hung_node.RULE,
    fd_exhaustion.RULE,
    erlang_process_limit.RULE,
    vhost_down.RULE,
    listener_missing.RULE,
    slow_disk.RULE,
    cpu_saturation.RULE,
    memory_near_limit.RULE,
    memory_fragmentation.RULE,
    disk_trending_full.RULE,
    disk_limit_unsafe.RULE,
    node_restarted.RULE,
    management_overload.RULE,
    tls_certificate_expiry.RULE,
)
