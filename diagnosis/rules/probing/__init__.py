"""Rules about what only a client feels (H)."""

from diagnosis.contract import Rule
from diagnosis.rules.probing import (
    probe_instrument_doubtful,
    probe_message_lost,
    probe_name_unresolved,
    probe_node_differs,
    probe_path_slow,
    probe_redelivered,
)

RULES: tuple[Rule, ...] = (
    probe_message_lost.RULE,
    probe_name_unresolved.RULE,
    probe_node_differs.RULE,
    probe_path_slow.RULE,
    probe_redelivered.RULE,
    probe_instrument_doubtful.RULE,
)
