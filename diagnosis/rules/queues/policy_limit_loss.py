"""policy-limit-loss: one policy limits several queues, and they drop their oldest messages.

The limit comes from the policy alone: no argument of these queues sets one. Each queue is also a finding of its own
(maxlen-drop-head), which becomes a consequence of this one.
Source: https://www.rabbitmq.com/docs/maxlength, https://www.rabbitmq.com/docs/policies
"""

from collections import defaultdict
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.topology import Policy
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.rules.queues.maxlen_drop_head import DroppingQueue, dropping

NAME = "policy-limit-loss"

LIMITS = ("max-length", "max-length-bytes")
_LEAST = 2
_NAMED = 10


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every policy by the queues that drop messages because of it."""
    limited: dict[tuple[str | None, str], list[DroppingQueue]] = defaultdict(list)
    for each in dropping(view):
        queue = each.queue
        by_argument = any(f"x-{name}" in queue.arguments for name in LIMITS)
        if queue.policy and not by_argument and not each.earlier and queue.setting("dead-letter-exchange") is None:
            limited[queue.vhost, queue.policy].append(each)
    for (vhost, name), queues in sorted(limited.items()):
        policy = next((it for it in view.policies if (it.vhost, it.name, it.operator) == (vhost, name, False)), None)
        # A limit may also come from an operator policy, whose name is in another field.
        if policy is not None and len(queues) >= _LEAST and any(it in policy.definition for it in LIMITS):
            yield _finding(policy, queues)


def _finding(policy: Policy, queues: list[DroppingQueue]) -> Finding:
    worst = sorted(queues, key=lambda it: (-it.found.lost, it.queue.name))
    limits = {name: policy.definition[name] for name in LIMITS if name in policy.definition}
    others = sorted(set(policy.definition) - set(LIMITS))
    return Finding(
        rule=NAME,
        severity=min((it.severity for it in queues), key=list(Severity).index),
        subject=Subject(kind="policy", name=policy.name, vhost=policy.vhost),
        since=min((it.run[0].at for it in queues), key=lambda at: at.mono).iso(),
        facts={
            "policy": policy.name,
            "vhost": policy.vhost,
            "pattern": policy.pattern,
            "limits": limits,
            "other_settings": others,
            "overflow": policy.definition.get("overflow"),
            "queues": [{"name": it.queue.name, "lost": it.found.lost} for it in worst[:_NAMED]],
            "queue_count": len(queues),
            "lost": sum(it.found.lost for it in queues),
            "over_seconds": max(it.seconds for it in queues),
            "ended": all(it.ended for it in queues),
            "proven": all(it.proven for it in queues),
        },
        evidence=(
            Evidence(key="policy", source=source("/api/policies", "definition", "pattern")),
            Evidence(
                key="queues",
                value=len(queues),
                source=source("/api/queues", "policy", "arguments", "messages_ready", "message_stats"),
            ),
        ),
        involved=Involved(queues=tuple(queue_ref(it.queue) for it in worst)),
        certainty=Certainty.CERTAIN if all(it.proven for it in queues) else Certainty.LIKELY,
        seen_seconds=max(it.seconds for it in queues),
    )
