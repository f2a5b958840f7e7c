"""Rules about how things are declared and configured (G)."""

from diagnosis.contract import Rule
from diagnosis.rules.topology import (
    binding_missing,
    declare_mismatch,
    deprecated_features_used,
    exclusive_name_locked,
    ha_policy_without_effect,
    monitoring_blind_spot,
    policy_not_applied,
    quorum_queue_without_dlx,
    removed_feature_used,
    unreplicated_on_cluster,
)

RULES: tuple[Rule, ...] = (
    binding_missing.RULE,
    declare_mismatch.RULE,
    exclusive_name_locked.RULE,
    monitoring_blind_spot.RULE,
    ha_policy_without_effect.RULE,
    unreplicated_on_cluster.RULE,
    quorum_queue_without_dlx.RULE,
    policy_not_applied.RULE,
    deprecated_features_used.RULE,
    removed_feature_used.RULE,
)
