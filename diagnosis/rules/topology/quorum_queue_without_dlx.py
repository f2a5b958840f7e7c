"""quorum-queue-without-dlx (G08): a message that comes back too often is deleted, and nothing keeps it.

From 4.0 on a quorum queue drops a message that was returned 20 times, unless it has another delivery limit; before, it
does so where a limit is set. With a dead-letter exchange it is kept there.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

import re
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.words import amount, some

NAME = "quorum-queue-without-dlx"

LIMITED = (4, 0)
"""The first version in which each quorum queue has a limit."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: its quorum queues with consumers, a limit and no dead-letter exchange."""
    if view.version is None:
        return
    targets = view.thresholds.benign_queue_patterns
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        if queue.type != "quorum" or not queue.consumers or queue.setting("dead-letter-exchange") is not None:
            continue
        if _limit(queue, view.version) is not None and not any(_named(pattern, queue) for pattern in targets):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost, queues in sorted(found.items()):
        yield _finding(vhost, sorted(queues, key=lambda queue: queue.name), view.version)


def _named(pattern: str, queue: Queue) -> bool:
    return re.search(pattern, queue.name) is not None


def _limit(queue: Queue, version: tuple[int, int]) -> int | None:
    """Returns that a message is allowed; None where there is no limit. A negative one means none."""
    told = queue.delivery_limit if isinstance(queue.delivery_limit, int) else queue.setting("delivery-limit")
    if isinstance(told, int):
        return told if told >= 0 else None
    return 20 if version >= LIMITED else None


def _finding(vhost: str, queues: list[Queue], version: tuple[int, int]) -> FindingReport:
    pattern, definition = quote("^NAME$"), quote('{"dead-letter-exchange":"dead"}')
    limits = sorted({limit for queue in queues if (limit := _limit(queue, version)) is not None})
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        since=None,
        summary=(
            f"{amount(len(queues), 'quorum queue')} in vhost {vhost!r} without a dead-letter exchange: a message that "
            f"comes back more than {some(map(str, limits))} times is deleted"
        ),
        cause="A delivery limit is in force (20 unless set, from 4.0 on), and nothing takes what it drops.",
        evidence=(
            EvidenceReport(
                what="quorum queues with consumers and without a dead-letter exchange",
                value=some((repr(queue.name) for queue in queues), 8),
                expected="a dead-letter exchange, by policy",
                source="/api/queues arguments, effective_policy_definition",
            ),
            EvidenceReport(
                what="delivery limit", value=some(map(str, limits)), source="/api/queues delivery_limit, arguments"
            ),
        ),
        next_steps=(
            f"make a place for them: an exchange and a queue in vhost {vhost!r}, bound to each other",
            f"rabbitmqctl set_policy -p {quote(vhost)} dead {pattern} {definition} --apply-to queues",
            "a queue has one policy: where one is in force, merge the two",
        ),
        runbook=runbook(NAME),
    )
