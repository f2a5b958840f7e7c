"""ha-policy-without-effect (G05): a policy asks for mirrored classic queues, which RabbitMQ 4.0 removed.

The queues that it matches have one replica, silently.
Source: https://www.rabbitmq.com/release-information, 4.0; https://www.rabbitmq.com/docs/3.13/ha
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.topology import Policy
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.rules.topology._shared.policies import MIRRORING, matches

NAME = "ha-policy-without-effect"

REMOVED_IN = (4, 0)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host that has such policies."""
    if view.version is None or view.version < REMOVED_IN:
        return
    found: dict[str, list[Policy]] = {}
    for policy in view.policies:
        if any(key in policy.definition for key in MIRRORING):
            found.setdefault(policy.vhost, []).append(policy)
    for vhost, policies in sorted(found.items()):
        yield _finding(view, vhost, sorted(policies, key=lambda policy: policy.name))


def _finding(view: View, vhost: str, policies: list[Policy]) -> Finding:
    matched = sorted(
        (
            queue
            for queue in view.all_queues
            if queue.vhost == vhost
            and queue.type in {None, "classic"}
            and any(matches(policy, queue) for policy in policies)
        ),
        key=lambda queue: queue.name,
    )
    several = len(view.nodes) > 1
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if several and matched else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        facts={
            "vhost": vhost,
            "policies": [policy.name for policy in policies],
            "keys": sorted({key for policy in policies for key in policy.definition if key in MIRRORING}),
            "queue_count": len(matched),
            "queue_names": [queue.name for queue in matched[:MAX_NAMED]],
            "node_count": len(view.nodes),
        },
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="policies", source=source("/api/policies", "definition")),
            Evidence(key="queues", source=source("/api/queues", "name", "type") + source("/api/policies", "pattern")),
        ),
        involved=Involved(queues=queue_refs(matched)),
    )
