"""deprecated-features-used (G04): what is in use here will be gone in a version to come.

Told by the broker from 3.13 on (`/api/deprecated-features/used`).
Source: https://www.rabbitmq.com/docs/deprecated-features
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.topology import Feature
from diagnosis.contract import RuleResult, View
from diagnosis.words import amount, some

NAME = "deprecated-features-used"

TELLS = (3, 13)

MEANING = {
    "global_qos": "a prefetch that a whole channel shares (basic.qos global=true)",
    "transient_nonexcl_queues": "queues that are neither durable nor exclusive",
    "classic_queue_mirroring": "mirrored classic queues (ha-mode)",
    "ram_node_type": "nodes that keep their metadata in memory",
    "queue_master_locator": "x-queue-master-locator; queue-leader-locator is what stays",
    "amqp_address_v1": "AMQP 1.0 addresses of the first kind",
}
"""What a name stands for, in plain words."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for the cluster."""
    if view.version is not None and view.version < TELLS:
        yield InconclusiveReport(
            rule=NAME,
            because="this version does not tell which deprecated features are used (3.13 on)",
            needs="read the release notes of the version that you upgrade to",
            permanent=True,
        )
        return
    usual = view.thresholds.topology.usual_features
    used = [each for each in view.features if each.deprecated and each.in_use and each.name not in usual]
    if used:
        yield _finding(view, sorted(used, key=lambda feature: feature.name))


def _finding(view: View, used: list[Feature]) -> FindingReport:
    names = ", ".join(feature.name for feature in used)
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"{amount(len(used), 'deprecated feature')} in use, which a version to come will refuse: {names}",
        cause="Applications or policies still use what RabbitMQ is giving up.",
        evidence=tuple(
            EvidenceReport(
                what=feature.name,
                value=MEANING.get(feature.name, "in use") + (f" ({feature.stage})" if feature.stage else ""),
                expected="not used",
                source="/api/deprecated-features/used",
            )
            for feature in used
        ),
        next_steps=(
            "see it from the broker: rabbitmq-diagnostics check_if_any_deprecated_features_are_used",
            *_who(view, used),
            "try it: deny it in a test broker (deprecated_features.permit.NAME = false) before the next upgrade",
        ),
        runbook=runbook(NAME),
    )


def _who(view: View, used: list[Feature]) -> Iterator[str]:
    if any(feature.name == "transient_nonexcl_queues" for feature in used):
        names = sorted(
            f"{queue.name!r} ({queue.vhost!r})"
            for queue in view.all_queues
            if queue.durable is False and not queue.exclusive
        )
        yield "queues that are neither durable nor exclusive: " + (some(names, 5) or "none listed now")
