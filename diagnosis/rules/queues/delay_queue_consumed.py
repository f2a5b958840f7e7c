"""delay-queue-consumed: a client consumes from a delay queue and from the queue behind it, so nothing is delayed.

A message waits in a delay queue until its TTL is over. A consumer takes it at once, and a retry that should come after
the delay comes at once. A subscription by a pattern of names makes it, or one for all queues.

Not each queue with a TTL is a delay queue. Its messages may have a time by which they must be handled, and its client
may also handle those that came too late. So either the queue behind it must dead-letter to it, as a retry does, or the
consumers must publish what they take to it again.
Source: https://www.rabbitmq.com/docs/dlx, https://www.rabbitmq.com/docs/ttl
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.purpose import DELIVERED
from diagnosis.routes import dead_letters_to
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.consumers.republish_loop import circling_queues
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import count

NAME = "delay-queue-consumed"

_LONGEST = 3600.0
"""Seconds of TTL from which on it may only limit for how long dead letters are kept."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every consumed queue with a TTL."""
    for queue in view.queues:
        if not queue.consumers or queue.type == "stream":
            continue
        ttl, target = queue.setting("message-ttl"), _behind(view, queue)
        if not isinstance(ttl, int) or not ttl or target is None:
            continue
        both = _consume_both(view, queue, target)
        if both and _is_delay_of(view, queue, target):
            yield _finding(view, queue, target, ttl / 1000, both)


def _behind(view: View, queue: Queue) -> Queue | None:
    """Return the only queue that dead letters of a queue reach; None without one, or if it is the queue itself."""
    places = dead_letters_to(view, queue) or frozenset()
    return view.queue(*next(iter(places))) if len(places) == 1 and queue.key not in places else None


def _consume_both(view: View, queue: Queue, target: Queue) -> tuple[ConsumerPath, ...]:
    """Return the consumers of a queue; () unless the client of each also consumes from another queue."""
    links = view.links(queue)
    served = {_client(link) for link in view.links(target)} - {None}
    return links if all(_client(link) in served for link in links) else ()


def _client(link: ConsumerPath) -> tuple[str | None, str | None] | None:
    """Return the application and user of a consumer; None if its connection is unknown."""
    return None if link.connection is None else (client_name(link.connection), link.connection.user)


def _is_delay_of(view: View, queue: Queue, target: Queue) -> bool:
    """Return whether messages should wait in a queue before they go to another one."""
    # Of two queues with a TTL, the one that is published to is the work queue. Dead letters are not counted so.
    if target.setting("message-ttl") is not None and count(queue.stats, "publish") >= count(target.stats, "publish"):
        return False
    if dead_letters_to(view, target) == frozenset({queue.key}):
        return True
    return bool(target.stats.publish) and queue.key in circling_queues(view)


def _finding(view: View, queue: Queue, target: Queue, ttl: float, links: tuple[ConsumerPath, ...]) -> Finding:
    delivered = count(queue.stats, *DELIVERED)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if delivered and ttl <= _LONGEST else Severity.INFO,
        subject=queue_subject(queue),
        facts={
            "queue": queue_facts(queue),
            "target": target.name,
            "clients": client_names(links),
            "ttl_seconds": ttl,
            "delivered": delivered,
            "circles": queue.key in circling_queues(view),
            "long": ttl > _LONGEST,
        },
        evidence=(
            Evidence(
                key="ttl",
                value=ttl,
                unit=Unit.SECONDS,
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            Evidence(key="consumers", value=len(links), source=source("/api/consumers", "queue.name")),
            Evidence(
                key="delivered",
                value=delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_get"),
            ),
        ),
        involved=involved_queue(queue, links, [queue_ref(target)]),
        certainty=Certainty.LIKELY,
    )
