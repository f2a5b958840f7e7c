"""auto-ack-consumer (B10): messages are acknowledged when they are sent, so a client that dies loses them.

This is a property of an application, not an event, so there is one finding per virtual host. It is an event where such
a consumer ends: then each queue has its own. What was sent just before is gone, and an upper bound of the loss. It is a
warning if consumers end again and again, or if one had just been sent a backlog: nothing limits how much is sent at
once, and no client processes all of it in the seconds before its end. Exclusive and auto-delete queues (replies,
telemetry of one client) are left out, because their messages are deleted with the client anyway.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-modes
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.preconditions import only_metrics
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.rules.consumers._shared.comings import LASTING, comings, recent_clients
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.sessions import sent_settled
from diagnosis.rules.consumers._shared.unattributed_consumers import is_unattributed
from diagnosis.series import delta, span
from diagnosis.unattributed import names, suspect_evidence, suspect_facts, suspects, with_suspects
from diagnosis.window import Series

NAME = "auto-ack-consumer"

_JUST_BEFORE = 30.0
"""Seconds before the end of a consumer is seen in which what was sent may not be processed. It is seen up to 10 s
late, and counters are 5 s behind.
"""
_BACKLOG = 2
"""Messages sent per message published from which on a backlog was sent."""
_REPORTED_FOR = 300.0
"""Seconds for which the end of a consumer is reported."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """List the consumers of durable queues that acknowledge automatically."""
    found: dict[str, list[tuple[Queue, ConsumerPath]]] = defaultdict(list)
    unknown = False
    for queue in view.queues:
        if not (queue.stats.deliver_no_ack or view.has_uncounted(queue)):
            continue
        native = [link for link in view.links(queue) if link.is_uncounted and link.consumer.ack_required is False]
        outlives = queue.durable and not queue.exclusive and not queue.auto_delete
        if queue.type == "stream" or (queue.settings_known and not outlives):
            continue
        if native and not queue.stats.deliver_no_ack and not queue.name.startswith(MQTT_SESSIONS):
            found[queue.vhost] += [(queue, link) for link in native]
        if not queue.stats.deliver_no_ack:
            continue
        # A queue that is still there after the end of a consumer is not deleted with it, whatever its settings.
        ends = comings(view.history(queue))
        if ends >= LASTING:
            yield _losing(view, queue, ends)
            continue
        last_end = _last_end(view, queue)
        if last_end is not None:
            yield _ended(view, queue, last_end)
        if not queue.settings_known:
            unknown = True
            continue
        links = [link for link in view.links(queue) if link.consumer.ack_required is False]
        found[queue.vhost] += [(queue, link) for link in links]
    yield from (_finding(view, vhost, each) for vhost, each in sorted(found.items()) if each)
    if unknown:
        yield only_metrics(NAME)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a consumer: the readings just before it, and what was sent and published meanwhile."""

    run: Series[Queue]
    sent: int
    published: int


def _last_end(view: View, queue: Queue) -> _End | None:
    """Return the latest end of a consumer shortly before which messages were sent to it; None without."""
    history, least = view.history(queue), view.limits(queue).queues.loss_least
    for place in range(len(history) - 1, 0, -1):
        older, newer = history[place - 1 : place + 1]
        before, now = older.value.consumers, newer.value.consumers
        if before is None or now is None:
            continue
        came_and_went = before == now == 0 and delta((older, newer), "deliver_no_ack") > 0
        if came_and_went or (before > now and not _acknowledged(history, place)):
            # Without a consumer, what is counted later was sent before; the counters are some seconds behind.
            following = history[place + 1 : place + 2]
            late = following if now == 0 and following and following[0].value.consumers == 0 else ()
            recent = [seen for seen in history[:place] if newer.at.since(seen.at) <= _JUST_BEFORE] or [older]
            run = (*recent, newer, *late)
            sent = delta(run, "deliver_no_ack")
            if sent >= least and view.now.since(newer.at) <= _REPORTED_FOR:
                return _End(run, sent, delta(run, "publish"))
    return None


def _acknowledged(history: Series[Queue], place: int) -> bool:
    """Return whether the consumer that ended before a reading may have been one that acknowledges.

    None was sent messages with automatic acknowledgement before; or consumers of both kinds were sent messages, and one
    with automatic acknowledgement goes on.
    """
    older, newer = history[place - 1 : place + 1]
    if not older.value.stats.deliver_no_ack:
        return True
    acknowledging = delta(history[max(place - 2, 0) : place + 1], "deliver") > 0
    return acknowledging and bool(newer.value.consumers) and delta(history[place:], "deliver_no_ack") > 0


def _ended(view: View, queue: Queue, end: _End) -> Finding:
    """Return the finding about a queue one of whose consumers ended, with what had just been sent to it."""
    least, consumers = view.limits(queue).queues.loss_least, queue.consumers or 0
    backlog = end.sent >= _BACKLOG * end.published + least
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if backlog else Severity.INFO,
        subject=queue_subject(queue),
        since=end.run[-1].at.iso(),
        facts={
            "vhost": queue.vhost,
            "consumers": [],
            "clients": [] if consumers else recent_clients(view, queue),
            "queues": [queue.name],
            "delivered": end.sent,
            "ends": None,
            "ended": True,
            "suspects": [],
            "backlog": backlog,
            "published": end.published,
            "over_seconds": span(end.run),
            "consumers_left": consumers,
        },
        evidence=(
            Evidence(key="ended", value=consumers, source=source("/api/queues", "consumers")),
            Evidence(
                key="in_flight",
                value=end.sent,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack", "message_stats.publish"),
            ),
        ),
        involved=involved_consumers((queue,), view.links(queue)),
        certainty=Certainty.LIKELY,
        seen_seconds=span(end.run),
    )


def _losing(view: View, queue: Queue, ends: int) -> Finding:
    """Return the finding about a queue whose consumers acknowledge automatically and end again and again."""
    history, links = view.history(queue), view.links(queue)
    delivered = delta(history, "deliver_no_ack")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=history[0].at.iso(),
        facts={
            "vhost": queue.vhost,
            "consumers": [{"tag": link.consumer.tag, "queue": queue.name} for link in links],
            "clients": recent_clients(view, queue),
            "queues": [queue.name],
            "delivered": delivered,
            "ends": ends,
            "ended": False,
            "suspects": [],
        },
        evidence=(
            Evidence(key="ends", value=ends, source=source("/api/queues", "consumers", "message_stats.deliver_no_ack")),
            Evidence(
                key="delivered",
                value=delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack"),
            ),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.LIKELY,
        seen_seconds=span(history),
    )


def _finding(view: View, vhost: str, found: list[tuple[Queue, ConsumerPath]]) -> Finding:
    queues = {queue.key: queue for queue, _ in found}
    links = [link for _, link in found]
    delivered = sum(delta(view.history(queue), "deliver_no_ack") for queue in queues.values())
    delivered += sum(sent_settled(view, link.session) for link in links if link.session)
    seconds = max(span(view.history(queue)) for queue in queues.values())
    # 4.0 does not tell whose they are.
    own = suspects(view, vhost) if any(is_unattributed(link) for link in links) else ()
    listed: list[Fact] = [{"tag": link.consumer.tag, "queue": queue.name} for queue, link in found]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        facts={
            "vhost": vhost,
            "consumers": listed,
            "clients": client_names(links) + names(own),
            "queues": sorted(name for _, name in queues),
            "delivered": delivered,
            "ends": None,
            "ended": False,
            "suspects": suspect_facts(own),
        },
        evidence=(
            Evidence(key="consumers", value=len(found), source=source("/api/consumers", "ack_required")),
            Evidence(
                key="delivered",
                value=delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack"),
            ),
            *suspect_evidence(own),
        ),
        involved=with_suspects(involved_consumers(queues.values(), links), own),
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
    )
