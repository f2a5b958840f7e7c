"""The table of rules. A new one costs its file, a line here, its test and its runbook."""

from diagnosis.contract import Rule
from diagnosis.rules import memory_alarm, no_consumer, pub_nacked_overflow, requeue_loop, stuck_consumer

RULES: tuple[Rule, ...] = (
    pub_nacked_overflow.RULE,
    memory_alarm.RULE,
    stuck_consumer.RULE,
    requeue_loop.RULE,
    no_consumer.RULE,
)
