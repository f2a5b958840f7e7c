"""removed-feature-used (G11): settings that this version of RabbitMQ no longer knows.

Policies and old queues keep them without effect; a client that still declares with them may be refused (4.3).
Source: https://www.rabbitmq.com/docs/deprecated-features, https://www.rabbitmq.com/docs/classic-queues
"""

from collections.abc import Iterator, Mapping

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, Subject, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.rules.topology._shared.policies import REMOVED

NAME = "removed-feature-used"

_OLD_VALUES: Mapping[str, frozenset[str | int]] = {
    "queue-mode": frozenset({"lazy"}),
    "queue-version": frozenset({1}),
    "queue-master-locator": frozenset({"min-masters", "client-local", "random"}),
}
"""Argument values that select a removed feature; only version 2 and the default mode remain."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host: its policies and queues with such settings."""
    version = view.version
    if version is None:
        return
    removed = tuple(key for key, since in REMOVED.items() if version >= since)
    if not removed:
        return
    found: dict[str, list[tuple[str, str, str]]] = {}
    for policy in view.policies:
        for key in removed:
            if key in policy.definition:
                kind = "operator policy" if policy.operator else "policy"
                found.setdefault(policy.vhost, []).append((key, kind, policy.name))
    for queue in view.all_queues:
        for key in removed:
            if queue.arguments and queue.arguments.get(f"x-{key}") in _OLD_VALUES[key]:
                found.setdefault(queue.vhost, []).append((f"x-{key}", "queue", queue.name))
    for vhost, settings in sorted(found.items()):
        yield _finding(vhost, sorted(settings), version)


def _finding(vhost: str, settings: list[tuple[str, str, str]], version: tuple[int, int]) -> Finding:
    listed: list[Fact] = [{"key": key, "kind": kind, "name": name} for key, kind, name in settings[:MAX_NAMED]]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        facts={
            "vhost": vhost,
            "setting_count": len(settings),
            "settings": listed,
            "broker_version": ".".join(map(str, version)),
        },
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(
                key="settings",
                value=len(settings),
                source=source("/api/policies", "definition") + source("/api/queues", "arguments"),
            ),
        ),
        involved=Involved(
            queues=tuple(QueueRef(vhost, name) for _, kind, name in settings[:MAX_NAMED] if kind == "queue")
        ),
    )
