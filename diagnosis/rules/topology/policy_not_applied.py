"""policy-not-applied (G03): a policy that covers nothing, or of which nobody can say whether it counts.

Of several policies that fit a queue, one counts: that of the highest priority. Of two with the same priority it is
not defined which.
Source: https://www.rabbitmq.com/docs/policies
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from ackscope.topology import Policy
from diagnosis.contract import RuleResult, View
from diagnosis.rules.topology.policies import covers_queues, matches
from diagnosis.words import amount, some

NAME = "policy-not-applied"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: its policies without effect, and those that are in each other's way."""
    by_vhost: dict[str, list[Policy]] = {}
    for policy in view.policies:
        if not policy.operator and covers_queues(policy):
            by_vhost.setdefault(policy.vhost, []).append(policy)
    if not by_vhost:
        return
    queues: dict[str, list[Queue]] = {}
    for queue in view.all_queues:
        if queue.vhost in by_vhost and not queue.exclusive:
            queues.setdefault(queue.vhost, []).append(queue)
    for vhost, policies in sorted(by_vhost.items()):
        there = queues.get(vhost, [])
        if there:
            yield from _judge(vhost, sorted(policies, key=lambda policy: policy.name), there)


def _judge(vhost: str, policies: list[Policy], queues: list[Queue]) -> Iterator[FindingReport]:
    covered = {policy.name: 0 for policy in policies}
    won = dict(covered)
    ties: dict[tuple[str, str], list[str]] = {}
    for queue in queues:
        fitting = [policy for policy in policies if matches(policy, queue)]
        if not fitting:
            continue
        highest = max(policy.priority or 0 for policy in fitting)
        first = [policy for policy in fitting if (policy.priority or 0) == highest]
        for policy in fitting:
            covered[policy.name] += 1
        for policy in first:
            won[policy.name] += 1
        if len(first) > 1 and first[0].definition != first[1].definition:
            ties.setdefault((first[0].name, first[1].name), []).append(queue.name)
    # A policy for exchanges as well may be there for those alone.
    idle = [policy for policy in policies if policy.apply_to != "all" and not covered[policy.name]]
    beaten = [policy for policy in policies if covered[policy.name] and not won[policy.name]]
    told = [
        *(f"{policy.name!r}: pattern {policy.pattern!r} fits no queue" for policy in idle),
        *(f"{policy.name!r}: others of higher priority cover all its queues" for policy in beaten),
        *(f"{one!r} and {two!r} have the same priority and fit {some(names, 2)}" for (one, two), names in ties.items()),
    ]
    if told:
        yield _finding(vhost, told, len(idle) + len(beaten), len(ties))


def _finding(vhost: str, told: list[str], idle: int, ties: int) -> FindingReport:
    parts = [f"{amount(idle, 'policy').replace('policys', 'policies')} without effect"] if idle else []
    if ties:
        parts.append(f"{amount(ties, 'pair')} of policies that are in each other's way")
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        since=None,
        summary=f"{' and '.join(parts)} in vhost {vhost!r}: queues may lack what they should have",
        cause="A queue takes one policy, that of the highest priority of those that fit; the others do nothing.",
        evidence=(
            EvidenceReport(
                what="policies",
                value=some(told, 5),
                expected="each counts somewhere",
                source="/api/policies, /api/queues",
            ),
        ),
        next_steps=(
            f"see what each queue has: rabbitmqctl list_queues -p {quote(vhost)} name policy",
            f"see the policies: rabbitmqctl list_policies -p {quote(vhost)}",
            "mend the pattern or the priority, merge the definitions, or clear what nobody needs",
        ),
        runbook=runbook(NAME),
    )
