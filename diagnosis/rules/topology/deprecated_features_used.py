"""deprecated-features-used (G04): features are in use that a future version will remove.

The broker reports it from 3.13 on (`/api/deprecated-features/used`).
Source: https://www.rabbitmq.com/docs/deprecated-features
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, Subject, source
from ackscope.topology import Feature
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs

NAME = "deprecated-features-used"

REPORTED_FROM = (3, 13)
TRANSIENT_QUEUES = "transient_nonexcl_queues"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster."""
    if view.version is not None and view.version < REPORTED_FROM:
        yield Inconclusive(rule=NAME, reason="not_reported", permanent=True)
        return
    usual = view.thresholds.topology.usual_features
    used = [each for each in view.features if each.deprecated and each.in_use and each.name not in usual]
    if used:
        yield _finding(view, sorted(used, key=lambda feature: feature.name))


def _finding(view: View, used: list[Feature]) -> Finding:
    names = [feature.name for feature in used]
    transient = sorted(
        (queue for queue in view.all_queues if queue.durable is False and not queue.exclusive),
        key=lambda queue: (queue.name, queue.vhost),
    )
    listed = transient if TRANSIENT_QUEUES in names else []
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            "features": names,
            "uses_transient_queues": TRANSIENT_QUEUES in names,
            "transient_count": len(listed),
            "transient_queues": [f"{queue.name!r} in vhost {queue.vhost!r}" for queue in listed[:MAX_NAMED]],
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(
            Evidence(
                key="feature",
                value=feature.name,
                source=source("/api/deprecated-features/used"),
                facts={"stage": feature.stage},
            )
            for feature in used
        ),
        involved=Involved(queues=queue_refs(listed)),
    )
