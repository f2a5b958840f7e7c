"""removed-feature-used (G11): settings that this version of RabbitMQ no longer knows.

Policies and old queues keep them, and they do nothing; a client that still declares with them may be refused (4.3).
Source: https://www.rabbitmq.com/docs/deprecated-features, https://www.rabbitmq.com/docs/classic-queues
"""

from collections.abc import Iterator, Mapping

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.topology.policies import REMOVED
from diagnosis.words import amount, some

NAME = "removed-feature-used"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: its policies and queues that carry such settings."""
    version = view.version
    if version is None:
        return
    gone = tuple(key for key, since in REMOVED.items() if version >= since)
    if not gone:
        return
    found: dict[str, list[str]] = {}
    for policy in view.policies:
        for key in gone:
            if key in policy.definition:
                kind = "operator policy" if policy.operator else "policy"
                found.setdefault(policy.vhost, []).append(f"{key} in {kind} {policy.name!r}")
    for queue in view.all_queues:
        for key in gone:
            # What is simply the only way left is no finding: version 2, or the usual mode.
            if queue.arguments and queue.arguments.get(f"x-{key}") in _ODD[key]:
                found.setdefault(queue.vhost, []).append(f"x-{key} of queue {queue.name!r}")
    for vhost, uses in sorted(found.items()):
        yield _finding(vhost, sorted(uses), version)


_ODD: Mapping[str, frozenset[str | int]] = {
    "queue-mode": frozenset({"lazy"}),
    "queue-version": frozenset({1}),
    "queue-master-locator": frozenset({"min-masters", "client-local", "random"}),
}
"""Values of arguments that once asked for something else than is there now."""


def _finding(vhost: str, uses: list[str], version: tuple[int, int]) -> FindingReport:
    told = ".".join(map(str, version))
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        since=None,
        summary=(
            f"{amount(len(uses), 'setting')} in vhost {vhost!r} that RabbitMQ {told} no longer knows: "
            f"without effect, and a reason to refuse a declaration"
        ),
        cause="They come from an older version: the broker keeps them and goes its own way.",
        evidence=(
            EvidenceReport(what="settings", value=some(uses, 8), expected="none", source="/api/policies, /api/queues"),
        ),
        next_steps=(
            "drop the keys from the policies: rabbitmqctl list_policies, then set_policy without them",
            "let the applications declare without these arguments, before a queue has to be declared anew",
            "see what else is deprecated: rabbitmq-diagnostics check_if_any_deprecated_features_are_used",
        ),
        runbook=runbook(NAME),
    )
