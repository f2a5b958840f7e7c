"""policy-not-applied (G03): a policy that is in force for no queue, or in conflict with another of the same priority.

If several policies match a queue, the one with the highest priority is in force. With equal priorities the choice is
undefined.
Source: https://www.rabbitmq.com/docs/policies
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, source
from ackscope.snapshot import Queue
from ackscope.topology import Policy
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.rules.topology._shared.policies import applies_to_queues, matches

NAME = "policy-not-applied"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host: its policies without effect, and those that conflict."""
    by_vhost: dict[str, list[Policy]] = {}
    for policy in view.policies:
        if not policy.operator and applies_to_queues(policy):
            by_vhost.setdefault(policy.vhost, []).append(policy)
    if not by_vhost:
        return
    queues: dict[str, list[Queue]] = {}
    for queue in view.all_queues:
        if queue.vhost in by_vhost and not queue.exclusive:
            queues.setdefault(queue.vhost, []).append(queue)
    for vhost, policies in sorted(by_vhost.items()):
        existing = queues.get(vhost, [])
        if existing:
            yield from _judge(vhost, sorted(policies, key=lambda policy: policy.name), existing)


def _judge(vhost: str, policies: list[Policy], queues: list[Queue]) -> Iterator[Finding]:
    matched = {policy.name: 0 for policy in policies}
    in_force = dict(matched)
    ties: dict[tuple[str, str], list[str]] = {}
    for queue in queues:
        matching = [policy for policy in policies if matches(policy, queue)]
        if not matching:
            continue
        highest = max(policy.priority or 0 for policy in matching)
        first = [policy for policy in matching if (policy.priority or 0) == highest]
        for policy in matching:
            matched[policy.name] += 1
        for policy in first:
            in_force[policy.name] += 1
        if len(first) > 1 and first[0].definition != first[1].definition:
            ties.setdefault((first[0].name, first[1].name), []).append(queue.name)
    # A policy that also applies to exchanges may be meant for those only.
    unmatched = [policy for policy in policies if policy.apply_to != "all" and not matched[policy.name]]
    overridden = [policy for policy in policies if matched[policy.name] and not in_force[policy.name]]
    if unmatched or overridden or ties:
        yield _finding(vhost, unmatched, overridden, ties)


def _finding(
    vhost: str, unmatched: list[Policy], overridden: list[Policy], ties: dict[tuple[str, str], list[str]]
) -> Finding:
    without_effect: list[Fact] = [
        *({"name": policy.name, "pattern": policy.pattern, "reason": "matches_no_queue"} for policy in unmatched),
        *({"name": policy.name, "pattern": policy.pattern, "reason": "overridden"} for policy in overridden),
    ]
    conflicts: list[Fact] = [
        {"policies": list(names), "queue_count": len(queues), "queues": queues[:MAX_NAMED]}
        for names, queues in ties.items()
    ]
    evidence = []
    if without_effect:
        fields = source("/api/policies", "pattern", "priority") + source("/api/queues", "name")
        evidence.append(Evidence(key="without_effect", value=len(without_effect), source=fields))
    if conflicts:
        fields = source("/api/policies", "pattern", "priority", "definition") + source("/api/queues", "name")
        evidence.append(Evidence(key="conflicts", value=len(conflicts), source=fields))
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        facts={"vhost": vhost, "without_effect": without_effect, "conflicts": conflicts},
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
    )
