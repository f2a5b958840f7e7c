"""Faults of declarations and configuration (G).

Not included: monitoring-blind-spot (the lab's user has all permissions) and ha-policy-without-effect (4.x refuses such
a policy; it only survives an upgrade).
"""

from lab.faults.fault import FaultSpec
from lab.faults.topology import (
    binding_in_mqtt_syntax,
    binding_keys_disjoint,
    binding_leak,
    binding_missing,
    declare_mismatch,
    declared_unbound,
    deprecated_features_used,
    exclusive_name_locked,
    feature_denied,
    hash_exchange_uneven,
    policy_not_applied,
    quorum_queue_without_dlx,
    removed_feature_used,
    unreachable_queue,
    unreplicated_on_cluster,
)

FAULTS: tuple[FaultSpec, ...] = (
    binding_in_mqtt_syntax.SPEC,
    binding_keys_disjoint.SPEC,
    binding_leak.SPEC,
    binding_missing.SPEC,
    declared_unbound.SPEC,
    declare_mismatch.SPEC,
    deprecated_features_used.SPEC,
    exclusive_name_locked.SPEC,
    feature_denied.SPEC,
    hash_exchange_uneven.SPEC,
    policy_not_applied.SPEC,
    quorum_queue_without_dlx.SPEC,
    removed_feature_used.SPEC,
    unreachable_queue.SPEC,
    unreplicated_on_cluster.SPEC,
)
