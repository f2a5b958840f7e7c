"""ha-policy-without-effect (G05): a policy asks for mirrored classic queues, which RabbitMQ 4.0 did away with.

The queues that it covers have one copy, silently.
Source: https://www.rabbitmq.com/release-information, 4.0; https://www.rabbitmq.com/docs/3.13/ha
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.topology import Policy
from diagnosis.contract import RuleResult, View
from diagnosis.rules.topology.policies import MIRRORING, matches
from diagnosis.words import amount, some

NAME = "ha-policy-without-effect"

GONE = (4, 0)


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host that has such policies."""
    if view.version is None or view.version < GONE:
        return
    found: dict[str, list[Policy]] = {}
    for policy in view.policies:
        if any(key in policy.definition for key in MIRRORING):
            found.setdefault(policy.vhost, []).append(policy)
    for vhost, policies in sorted(found.items()):
        yield _finding(view, vhost, sorted(policies, key=lambda policy: policy.name))


def _finding(view: View, vhost: str, policies: list[Policy]) -> FindingReport:
    covered = sorted(
        queue.name
        for queue in view.all_queues
        if queue.vhost == vhost
        and queue.type in {None, "classic"}
        and any(matches(policy, queue) for policy in policies)
    )
    several = len(view.nodes) > 1
    names = some(repr(policy.name) for policy in policies)
    keys = sorted({key for policy in policies for key in policy.definition if key in MIRRORING})
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if several and covered else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        since=None,
        summary=(
            f"{amount(len(covered), 'classic queue')} in vhost {vhost!r} should be mirrored by policy {names}, "
            "and have one copy: when its node is gone, so are they"
        ),
        cause="Classic queue mirroring ended with RabbitMQ 4.0; such keys of a policy are kept, and do nothing.",
        evidence=(
            EvidenceReport(
                what="policies", value=f"{names}: {', '.join(keys)}", expected="no ha-* keys", source="/api/policies"
            ),
            EvidenceReport(
                what="queues covered", value=some(map(repr, covered), 5) or "none", source="/api/queues, pattern"
            ),
        ),
        next_steps=(
            "see them: rabbitmq-queues list_policies_with_classic_queue_mirroring",
            "declare the queues that must outlive a node as quorum queues (x-queue-type: quorum), and move to them",
            "then drop the keys, so that nobody believes in them: rabbitmqctl set_policy or clear_policy",
        ),
        runbook=runbook(NAME),
    )
