"""quorum-queue-without-dlx (G08): a message that is redelivered too often is deleted for good.

From 4.0 on a quorum queue drops a message that was redelivered 20 times, unless it has another delivery limit; before,
it does so if a limit is set. With a dead-letter exchange the message goes there.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

import re
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs, queue_with_policy

NAME = "quorum-queue-without-dlx"

LIMITED_FROM = (4, 0)
"""The first version in which each quorum queue has a limit."""
DEFAULT_LIMIT = 20


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: its quorum queues with consumers, a limit and no dead-letter exchange."""
    if view.version is None:
        return
    benign = [re.compile(each) for each in view.thresholds.benign_queue_patterns]
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        if queue.type != "quorum" or not queue.consumers or queue.setting("dead-letter-exchange") is not None:
            continue
        if _limit(queue, view.version) is not None and not any(each.search(queue.name) for each in benign):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost, queues in sorted(found.items()):
        yield _finding(view, vhost, sorted(queues, key=lambda queue: queue.name), view.version)


def _limit(queue: Queue, version: tuple[int, int]) -> int | None:
    """Return the allowed redeliveries of a message; None without a limit. A negative limit means none."""
    limit = queue.delivery_limit if isinstance(queue.delivery_limit, int) else queue.setting("delivery-limit")
    if isinstance(limit, int):
        return limit if limit >= 0 else None
    return DEFAULT_LIMIT if version >= LIMITED_FROM else None


def _finding(view: View, vhost: str, queues: list[Queue], version: tuple[int, int]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        facts={
            "vhost": vhost,
            "queue_count": len(queues),
            "queue_names": [queue.name for queue in queues[:MAX_NAMED]],
            "limits": sorted({limit for queue in queues if (limit := _limit(queue, version)) is not None}),
            "first": queue_with_policy(view, queues[0]),
        },
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(
                key="queues",
                value=len(queues),
                source=source("/api/queues", "type", "consumers", "arguments", "effective_policy_definition"),
            ),
            Evidence(key="limits", source=source("/api/queues", "delivery_limit", "arguments")),
        ),
        involved=Involved(queues=queue_refs(queues)),
    )
