"""no-consumer (B01): messages are ready in a queue and nobody takes them, neither by consuming nor by polling.

What a queue is for follows from what was seen of it. A setting or a name decides only if nothing was seen. A deployment
closes the channels of its consumers: a channel that consumed before, is open and has no consumer now is none.

Persistent sessions of MQTT clients that are away are one finding per virtual host, because there may be thousands.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Certainty, Evidence, Facts, Finding, Involved, Severity, Suppressed, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.churn_loops import churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_facts
from diagnosis.memo import per_view
from diagnosis.names import unseen_differences
from diagnosis.preconditions import each_known, if_known
from diagnosis.purpose import (
    POLLED,
    dead_letters_received,
    federated_to,
    had_consumer,
    left_unconsumed,
    mqtt_client,
    was_consumed,
)
from diagnosis.queue_families import name_pattern
from diagnosis.relations import SAME_CONNECTION
from diagnosis.routes import bound_exchanges, dead_letter_targets, dead_letters_from, is_delay, may_get_dead_letters
from diagnosis.rules.clients._shared.connections import has_channels
from diagnosis.rules.clients._shared.logins import refused_logins
from diagnosis.rules.clients._shared.shut_out import shut_out
from diagnosis.rules.consumers._shared.after_restart import lost_by_restart
from diagnosis.rules.consumers._shared.arrivals import filled_by_consumers, filling_clients, filling_shovels, passed_on
from diagnosis.rules.consumers._shared.hash_exchanges import hash_exchange_of
from diagnosis.rules.consumers._shared.lost_consumers import LostConsumers, lost_consumers, took_messages
from diagnosis.rules.consumers._shared.objects import client_names, queue_subject
from diagnosis.rules.consumers._shared.pollers import is_polled_in_time
from diagnosis.rules.consumers._shared.replaced import Replacement, replacement
from diagnosis.rules.consumers._shared.similar_queues import similar_queue
from diagnosis.rules.publishers._shared.clients_without_queue import share_word
from diagnosis.rules.publishers._shared.starved_queues import never_fed
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import count, delta, last, piled_up_seconds, span, stretch, without_consumers
from diagnosis.usual import queue_baselines
from diagnosis.window import Series, Timestamped

NAME = "no-consumer"

_RISES_WITHIN = 60.0
"""Seconds in which more messages must be ready so that a queue is said to grow: one that is full takes no more."""

_LEFT_LEAST, _LEFT_SHARE = 10, 0.05
"""Messages, and share of all that were published, that are more than a remainder."""


@dataclass(frozen=True, slots=True)
class _Unread:
    """A queue with ready messages that nobody takes, and the readings that show it."""

    queue: Queue
    series: Series[Queue]
    severity: Severity
    replaced: Replacement | None = None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that has messages ready and no consumer."""
    sessions: dict[str, list[_Unread]] = defaultdict(list)

    def judge(queue: Queue) -> Iterator[RuleResult]:
        unconsumed = stretch(view.history(queue), _unconsumed)
        severity = _severity(view, queue, unconsumed)
        if severity is None or is_polled_in_time(view.history(queue)):
            return
        intended = _intended(view, queue)
        if intended is not None and not _gets_all(view, queue, intended[0]):
            reason, facts = intended
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason=reason, facts=facts)
        elif mqtt_client(queue) is not None:
            sessions[queue.vhost].append(_Unread(queue, unconsumed, severity))
        else:
            replaced = replacement(view, queue, unconsumed) if federated_to(queue) is None else None
            # What the broker deletes by itself needs nobody.
            harmless = replaced is not None and replaced.expires_seconds is not None
            yield _finding(view, _Unread(queue, unconsumed, Severity.INFO if harmless else severity, replaced))

    yield from each_known(NAME, (each for each in view.queues if each.consumers == 0 and each.messages_ready), judge)
    for unread in sessions.values():
        # The one that is away for longest, so that the subject stays the same.
        first, *others = sorted(
            unread, key=lambda each: (each.severity.urgency, each.series[0].at.mono, each.queue.name)
        )
        yield _finding(view, first, others)


def _gets_all(view: View, queue: Queue, reason: str) -> bool:
    """Return whether a client publishes nearly all of its messages to a queue for failures, for long."""
    if reason not in ("benign_name", "dead_letter_queue"):
        return False
    found = passed_on(view, queue, filling_clients(view, queue))
    return found is not None and found.seconds >= view.limits(queue).consumers.no_consumer_growing


def _severity(view: View, queue: Queue, unconsumed: Series[Queue]) -> Severity | None:
    """Return the severity now; None if it is too early for a finding."""
    limits = view.limits(queue)
    if len(unconsumed) < 2:
        return None
    if _grows(last(unconsumed, limits.consumers.no_consumer_growing)):
        if _seconds(view, queue, unconsumed) >= _warning_after(view, queue):
            return Severity.INFO if _expires_unread(view, queue) else Severity.WARNING
        return Severity.INFO if span(unconsumed) >= limits.early else None
    left, seconds = _is_left(queue), span(unconsumed)
    if seconds >= limits.consumers.no_consumer_quiet:
        return Severity.WARNING if left else Severity.INFO
    return Severity.INFO if left and seconds >= limits.early else None


def _is_left(queue: Queue) -> bool:
    """Return whether a queue that was consumed holds more than a remainder, though nobody publishes or consumes now."""
    left = queue.messages_ready or 0
    return was_consumed(queue) and left >= max(_LEFT_LEAST, _LEFT_SHARE * (queue.stats.publish or 0))


def _seconds(view: View, queue: Queue, unconsumed: Series[Queue]) -> float:
    """Return for how long nobody has taken messages: as seen or, if no consumer was ever seen, as the backlog tells."""
    seen = span(unconsumed)
    return max(seen, _piled_up(view, unconsumed)) if len(unconsumed) == len(view.history(queue)) else seen


def _piled_up(view: View, unconsumed: Series[Queue]) -> float:
    """Return how long the backlog took to arrive; 0 if it does not grow: then what is published is not kept.

    No longer than the queue can have existed.
    """
    exists = view.longest_life(unconsumed[-1].value)
    return min(exists, piled_up_seconds(unconsumed)) if _rises(unconsumed) else 0.0


def _warning_after(view: View, queue: Queue) -> float:
    """Return the seconds after which a queue that grows without a consumer is a warning."""
    limits = view.limits(queue).consumers
    if federated_to(queue) is not None:
        return limits.no_consumer_growing
    times = [limits.no_consumer_growing]
    consumers = lost_consumers(view, queue)
    # A client whose login is refused does not come back by itself, so it is no deployment.
    if consumers.proves_no_deployment or queue.key in per_view(view, _of_refused_clients):
        times.append(view.limits(queue).early)
    # Its consumers are there: they pause, or wait at another queue.
    if consumers.cancelled or similar_queue(view, queue) is not None:
        times.append(limits.cancelled_for)
    lost = lost_by_restart(view, queue)
    if lost is not None and lost.seen:
        # The broker is back, and the publishers are.
        times.append(limits.restarted_for)
    return min(times)


def _of_refused_clients(view: View) -> frozenset[Hashable]:
    """Return the queues that lost their consumers when logins began to be refused, so often that it is a finding."""
    limits = view.thresholds.clients
    refused = (each for each in refused_logins(view, limits.auth_within) if each.failed >= limits.auth_failures)
    return frozenset(queue.key for each in refused for queue in shut_out(view, each).waiting)


def _grows(series: Series[Queue]) -> bool:
    return delta(series, "publish") > 0 or _ready(series[-1]) > _ready(series[0])


def _rises(series: Series[Queue]) -> bool:
    recent = last(series, _RISES_WITHIN)
    return _ready(recent[-1]) > _ready(recent[0])


def _may_be_needed(view: View, queue: Queue) -> bool:
    """Return whether its messages may be all that is left: dead letters, or others left although nobody took any."""
    if dead_letters_received(queue) or left_unconsumed(view, queue) or may_get_dead_letters(view, queue):
        return True
    unconsumed = stretch(view.history(queue), _unconsumed)
    return any(_ready(newer) < _ready(older) for older, newer in pairwise(unconsumed))


def _unconsumed(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (
        without_consumers(older, newer) and _ready(older) > 0 and _ready(newer) > 0 and not took_messages(older, newer)
    )


def _ready(seen: Timestamped[Queue]) -> int:
    return seen.value.messages_ready or 0


def _intended(view: View, queue: Queue) -> tuple[str, Facts] | None:
    """Return the reason to suppress a queue that is meant to have no consumer, with its facts; None if it is not."""
    if _is_missed(view, queue):
        return None
    if is_delay(view, queue):
        expired = left_unconsumed(view, queue)
        by_setting = not expired and queue.setting("message-ttl") is not None
        return "delay_queue", {"expired": expired, "by_setting": by_setting}
    # What clients did comes first: it shows enough of a queue whose settings are unknown.
    if not _is_work_queue(view, queue) and queue.key in dead_letter_targets(view):
        return "dead_letter_queue", {}
    if _expires_unread(view, queue) and left_unconsumed(view, queue):
        return "expires_unread", {"expires_after_seconds": queue.setting("message-ttl") / 1000}
    if queue.type == "stream":
        return "stream", {}
    if queue.exclusive is True:
        return "exclusive_queue", {}
    if _ever_consumed(view, queue):
        return None
    patterns = view.thresholds.benign_queue_patterns
    pattern = next((each for each in patterns if re.search(each, queue.name)), None)
    return ("benign_name", {"pattern": pattern}) if pattern else None


def _ever_consumed(view: View, queue: Queue) -> bool:
    """Return whether a queue had a consumer; one that is declared again has new counters."""
    return was_consumed(queue) or had_consumer(view.listings(queue))


def _is_work_queue(view: View, queue: Queue) -> bool:
    """Return whether a queue that gets dead letters is there for work: it lost its consumer, or publishers fill it."""
    if had_consumer(view.listings(queue)):
        return True
    return was_consumed(queue) and (queue.stats.publish or 0) > dead_letters_received(queue)


def _expires_unread(view: View, queue: Queue) -> bool:
    """Return whether nobody ever consumed from a queue whose messages expire, so that it may need no consumer."""
    if was_consumed(queue) or _is_missed(view, queue):
        return False
    return isinstance(queue.setting("message-ttl"), int)


def _is_missed(view: View, queue: Queue) -> bool:
    """Return whether a queue of unknown settings is for work: its consumers are there, at another queue."""
    return not queue.settings_known and similar_queue(view, queue) is not None


def _idle_connections(view: View, queue: Queue, since: float) -> list[Connection]:
    """Return the connections without a channel that may have consumed from the queue before `since`.

    A later one did not, and the broker reports 0 channels of it until it refreshes its statistics. One whose channels
    come and go is between two of them.
    """
    loops = {each.connection.name for each in churn_loops(view) if not each.whole}
    idle = [
        each
        for each in view.connections
        if each.vhost == queue.vhost and each.channels == 0 and has_channels(each) and each.name not in loops
    ]
    earlier = [each for each in idle if each.connected_at is None or each.connected_at < since]
    return sorted(earlier, key=lambda each: each.client_name or each.name)


def _idle_elsewhere(view: View, queue: Queue) -> list[Queue]:
    """Return the queues that wait for a first message and may be of the same application as a queue.

    Its name or client shares a word with the queue's name, or both are bound to one exchange. Others are idle for
    reasons of their own.
    """
    exchanges = bound_exchanges(view, queue)
    return [
        each
        for each in never_fed(view, queue.vhost)
        if exchanges & bound_exchanges(view, each)
        or share_word(view, queue.vhost, queue.name, (each.name, *client_names(view.links(each))))
    ]


def _dead_letter_sources(view: View, queue: Queue, unconsumed: Series[Queue]) -> list[str]:
    """Return the queues that dead-letter into a queue that gained more messages than were published to it.

    Messages must have left them otherwise than to a consumer: clients of MQTT and AMQP 1.0 are not counted, either.
    """
    published = delta(unconsumed, "publish")
    limits = view.limits(queue).queues
    unsure = limits.loss_least + limits.loss_skew * published / max(1.0, span(unconsumed))
    if _ready(unconsumed[-1]) - _ready(unconsumed[0]) - published < unsure:
        return []
    origins = if_known(lambda: dead_letters_from(view, queue), tuple[Queue, ...]())
    return [each.name for each in origins if _lost(view, each, span(unconsumed)) >= limits.loss_least]


def _lost(view: View, queue: Queue, seconds: float) -> int:
    recent = balance(last(view.history(queue), seconds))
    return recent.missing if recent else 0


def _clients_of_deleted(_view: View, finding: Finding) -> Iterable[Hashable]:
    loops = finding.facts["similar_connections"]
    return tuple(loops) if isinstance(loops, list) else ()


def _queue_form(_view: View, finding: Finding) -> Iterable[Hashable]:
    pattern = name_pattern(finding.subject.name)
    return ((finding.subject.vhost, pattern),) if "*" in pattern else ()


SAME_FORM = Relation(_queue_form, _queue_form)
"""Both are about queues of one form in one virtual host: shards of one application, or queues that it left behind."""

CLIENTS_OF_DELETED_QUEUE = Relation(_clients_of_deleted, SAME_CONNECTION.of_other)
"""The cause is a queue that replaced a deleted one; the consequence is about a client that still asks for that."""


def _finding(view: View, unread: _Unread, others: Sequence[_Unread] = ()) -> Finding:
    queue, unconsumed, severity = unread.queue, unread.series, unread.severity
    limits = view.limits(queue).consumers
    recent = last(unconsumed, limits.no_consumer_growing)
    ready, published, seconds = _ready(unconsumed[-1]), delta(recent, "publish"), span(unconsumed)
    # A queue that is declared again has new counters.
    listings = view.listings(queue)
    grows = _grows(recent)
    absent, downstream = mqtt_client(queue), federated_to(queue)
    # No application consumes from the queue of a federation link.
    lacks_application = grows and downstream is None
    # An MQTT client has no channel that could be closed.
    may_idle = downstream is None and absent is None
    idle = _idle_connections(view, queue, unconsumed[0].at.wall) if may_idle else []
    consumers = lost_consumers(view, queue) if lacks_application else LostConsumers()
    cancelled = consumers.cancelled
    connections = [view.connection(each.connection_name) for each in cancelled]
    left = sorted({name for each in connections if (name := client_name(each)) is not None})
    idle_names = [each.client_name or each.name for each in idle]
    evidence = [
        Evidence(key="consumers", value=0, source=source("/api/queues", "consumers")),
        Evidence(key="ready", value=ready, unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")),
        Evidence(
            key="published",
            value=published,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.publish"),
            facts={"seconds": span(recent)},
        ),
        Evidence(
            key="polled",
            value=0,
            source=source("/api/queues", "message_stats.get", "message_stats.get_empty"),
        ),
        *queue_baselines(view, queue, "consumers", "ready"),
    ]
    if idle:
        evidence.append(
            Evidence(key="idle_connections", value=len(idle), source=source("/api/connections", "channels"))
        )
    if cancelled:
        evidence.append(
            Evidence(
                key="cancelled",
                value=len(cancelled),
                source=source("/api/channels", "consumer_count", "message_stats.deliver"),
            )
        )
    publishers, shovels = filling_clients(view, queue), filling_shovels(view, queue)
    dead_letter_sources = _dead_letter_sources(view, queue, unconsumed) if grows else []
    if publishers or shovels or dead_letter_sources:
        evidence.append(
            Evidence(
                key="filled_by",
                source=source("/api/channels", "message_stats.publish")
                + (source("/api/shovels", "src_queue", "dest_queue") if shovels else ()),
            )
        )
    through = passed_on(view, queue, publishers) if lacks_application else None
    filler = filled_by_consumers(publishers) if lacks_application and not _ever_consumed(view, queue) else None
    similar = similar_queue(view, queue) if downstream is None else None
    # Whose consumers wait at a queue that nobody uses may listen to the wrong one.
    found_other = similar is not None or downstream is not None or _ever_consumed(view, queue)
    idle_elsewhere = [] if found_other else _idle_elsewhere(view, queue)
    warning_after = _warning_after(view, queue)
    lost = lost_by_restart(view, queue) if lacks_application else None
    early = severity is Severity.INFO and grows and seconds < warning_after
    piled_up = _piled_up(view, unconsumed)
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=unconsumed[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "ready": ready,
            "published": published,
            "grows": grows,
            "rises": _rises(unconsumed),
            "may_be_needed": _may_be_needed(view, queue),
            "idle_elsewhere": [
                {"queue": each.name, "clients": client_names(view.links(each))} for each in idle_elsewhere
            ],
            "expires_after_seconds": queue.setting("message-ttl") / 1000 if _expires_unread(view, queue) else None,
            "may_be_delay": not was_consumed(queue)
            and if_known(lambda: queue.setting("dead-letter-exchange") is not None, otherwise=False),
            "had_consumer": had_consumer(listings),
            "watched_seconds": span(listings),
            "was_consumed": was_consumed(queue),
            "polled": count(queue.stats, *POLLED),
            "returned": min(count(queue.stats, "get"), queue.stats.redeliver or 0),
            "publishers": [each.facts() for each in publishers],
            "shovel_moves": shovels,
            "dead_letter_sources": dead_letter_sources,
            "passed_on": through.facts() if through else None,
            "filled_by_consumers": filler.facts() if filler else None,
            "clients_unknown": view.lists_no_clients,
            "similar_queue": similar.name if similar else None,
            "similar_differs": unseen_differences(queue.name, similar.name) if similar else [],
            "similar_vhost": similar.vhost if similar else None,
            "similar_received": similar is not None and similar.received,
            "similar_gone": similar is not None and similar.gone,
            "similar_clients": list(similar.clients) if similar else [],
            "similar_connections": list(similar.loops) if similar else [],
            "without_consumer_seconds": seconds,
            "left_for_seconds": limits.no_consumer_quiet if not grows and _is_left(queue) else None,
            "piled_up_seconds": piled_up if severity is Severity.WARNING and piled_up > seconds else None,
            "only_polled": not count(queue.stats, "deliver", "deliver_no_ack") and was_consumed(queue),
            "hash_exchange": shares.facts(view) if (shares := hash_exchange_of(view, queue)) else None,
            "queue_form": unread.replaced.pattern if unread.replaced else None,
            "consumed_of_form": unread.replaced.consumed if unread.replaced else 0,
            "deleted_unused_after_seconds": unread.replaced.expires_seconds if unread.replaced else None,
            "idle_connections": idle_names,
            "cancelled": left,
            "cancelled_seen": consumers.seen,
            "cancelled_by_broker": consumers.by_broker,
            "gone_shovels": list(consumers.shovels),
            "gone_consumers": list(consumers.gone),
            "restarted": lost.facts() if lost else None,
            "logins_refused": queue.key in per_view(view, _of_refused_clients),
            "mqtt_client": absent,
            "federated_to": downstream,
            "other_sessions": [mqtt_client(each.queue) for each in others[:MAX_NAMED]],
            "other_session_count": len(others),
            "other_sessions_ready": sum(each.queue.messages_ready or 0 for each in others),
            "warning_after_seconds": warning_after,
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=queue_refs([queue, *(each.queue for each in others)]),
            channels=tuple(each.name for each in cancelled),
            connections=tuple(
                dict.fromkeys(
                    (
                        *(each.name for each in (*idle, *connections) if each is not None),
                        *(similar.loops if similar else ()),
                    )
                )
            ),
            clients=tuple(
                dict.fromkeys(
                    [
                        *([absent] if absent else []),
                        *(through.clients if through else ()),
                        *(similar.clients if similar else []),
                        *(each.client_name for each in (*idle, *connections) if each and each.client_name),
                    ]
                )
            ),
        ),
        certainty=Certainty.EARLY if early else Certainty.CERTAIN,
        seen_seconds=seconds,
    )
