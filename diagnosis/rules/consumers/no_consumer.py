"""no-consumer (B01): messages are ready in a queue and nobody takes them, neither by consuming nor by polling.

What a queue is for follows from what was seen of it. A setting or a name decides only if nothing was seen. A deployment
closes the channels of its consumers: a channel that consumed before, is open and has no consumer now is none.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches

from ackscope.findings import Certainty, Evidence, Facts, Finding, Involved, Severity, Suppressed, Unit, source
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.memo import per_view
from diagnosis.purpose import dead_letters_received, had_consumer, left_unconsumed, mqtt_client, was_consumed
from diagnosis.routes import dead_letter_targets, is_delay
from diagnosis.rules.clients._shared.connections import has_channels
from diagnosis.rules.consumers._shared.comings import was_cancelled
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.series import count, delta, last, piled_up_seconds, span, stretch
from diagnosis.usual import queue_baselines
from diagnosis.window import Series, Timestamped

NAME = "no-consumer"

TAKE_COUNTERS = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack")
"""Counters that rise when a client takes messages, or tries to."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that has messages ready and no consumer."""
    for queue in view.queues:
        if queue.consumers != 0 or not queue.messages_ready:
            continue
        unconsumed = stretch(view.history(queue), _unconsumed)
        severity = _severity(view, queue, unconsumed)
        if severity is None:
            continue
        intended = _intended(view, queue)
        if intended is not None:
            reason, facts = intended
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason=reason, facts=facts)
        else:
            yield _finding(view, queue, unconsumed, severity)


def _severity(view: View, queue: Queue, unconsumed: Series[Queue]) -> Severity | None:
    """Return the severity now; None if it is too early for a finding."""
    limits = view.limits(queue)
    if len(unconsumed) < 2:
        return None
    if _grows(last(unconsumed, limits.consumers.no_consumer_growing)):
        if _seconds(view, queue, unconsumed) >= _warning_after(view, queue):
            return Severity.INFO if _expires_unread(queue) else Severity.WARNING
        return Severity.INFO if span(unconsumed) >= limits.early else None
    return Severity.INFO if span(unconsumed) >= limits.consumers.no_consumer_quiet else None


def _seconds(view: View, queue: Queue, unconsumed: Series[Queue]) -> float:
    """Return for how long nobody has taken messages: as seen or, if no consumer was ever seen, as the backlog tells."""
    seen = span(unconsumed)
    return max(seen, piled_up_seconds(unconsumed)) if len(unconsumed) == len(view.history(queue)) else seen


def _warning_after(view: View, queue: Queue) -> float:
    """Return the seconds after which a queue that grows without a consumer is a warning."""
    limits = view.limits(queue).consumers
    if not _cancelled(view, queue):
        return limits.no_consumer_growing
    return min(limits.cancelled_for, limits.no_consumer_growing)


def _cancelled(view: View, queue: Queue) -> list[Channel]:
    """Return the open channels of a virtual host that consumed before, all of whose consumers were cancelled since.

    By the client, or by the broker when a queue is deleted or fails. The list of consumers may be newer.
    """
    if not was_consumed(queue):
        return []
    return [
        channel
        for channel in per_view(view, _without_consumer).get(queue.vhost, ())
        if not view.queues_served(channel.name)
    ]


def _without_consumer(view: View) -> dict[str | None, list[Channel]]:
    found: dict[str | None, list[Channel]] = defaultdict(list)
    for channel in filter(was_cancelled, view.channels):
        found[channel.vhost].append(channel)
    return found


def _similar_queue(view: View, queue: Queue) -> str | None:
    """Return a queue with nearly the same name whose consumers get nothing: one of the two names is wrong.

    The names differ in case, in a separator or in a letter. Names that differ in a number are those of shards.
    """
    idle = per_view(view, _idle_queues).get(queue.vhost, ())
    alike = {each for each in idle if _letters(each) == _letters(queue.name)}
    close = alike or set(get_close_matches(queue.name, idle[:_COMPARED], n=1, cutoff=_CLOSE))
    return next((each for each in sorted(close) if _NUMBERS.findall(each) == _NUMBERS.findall(queue.name)), None)


def _idle_queues(view: View) -> dict[str, list[str]]:
    """Return the queues of each virtual host that are empty, have consumers and got nothing."""
    found: dict[str, list[str]] = defaultdict(list)
    for queue in view.queues:
        # Sessions of MQTT clients count nothing, and have names that differ in the client id.
        if queue.consumers and not queue.messages and mqtt_client(queue) is None and not _moves(view.history(queue)):
            found[queue.vhost].append(queue.name)
    return found


_COMPARED = 200
"""Names that are compared letter by letter, which takes time."""
_CLOSE = 0.9
_NUMBERS = re.compile(r"[0-9]+")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _moves(series: Series[Queue]) -> bool:
    return delta(series, "publish", "deliver", "deliver_no_ack") > 0


def _grows(series: Series[Queue]) -> bool:
    return delta(series, "publish") > 0 or _ready(series[-1]) > _ready(series[0])


def _unconsumed(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (
        older.value.consumers == newer.value.consumers == 0
        and _ready(older) > 0
        and _ready(newer) > 0
        and all(delta((older, newer), counter) == 0 for counter in TAKE_COUNTERS)
    )


def _ready(seen: Timestamped[Queue]) -> int:
    return seen.value.messages_ready or 0


def _intended(view: View, queue: Queue) -> tuple[str, Facts] | None:
    """Return the reason to suppress a queue that is meant to have no consumer, with its facts; None if it is not."""
    if is_delay(view, queue):
        expired = left_unconsumed(view, queue)
        by_setting = not expired and queue.setting("message-ttl") is not None
        return "delay_queue", {"expired": expired, "by_setting": by_setting}
    if queue.key in dead_letter_targets(view) and not _is_work_queue(view, queue):
        return "dead_letter_queue", {}
    if _expires_unread(queue) and left_unconsumed(view, queue):
        return "expires_unread", {"expires_after_seconds": queue.setting("message-ttl") / 1000}
    if queue.type == "stream":
        return "stream", {}
    if queue.exclusive is True:
        return "exclusive_queue", {}
    if was_consumed(queue):
        return None
    patterns = view.thresholds.benign_queue_patterns
    pattern = next((each for each in patterns if re.search(each, queue.name)), None)
    return ("benign_name", {"pattern": pattern}) if pattern else None


def _is_work_queue(view: View, queue: Queue) -> bool:
    """Return whether a queue that gets dead letters is there for work: it lost its consumer, or publishers fill it."""
    if had_consumer(view.history(queue)):
        return True
    return was_consumed(queue) and (queue.stats.publish or 0) > dead_letters_received(queue)


def _expires_unread(queue: Queue) -> bool:
    """Return whether nobody ever consumed from a queue whose messages expire, so that it may need no consumer."""
    return isinstance(queue.setting("message-ttl"), int) and not was_consumed(queue)


def _idle_connections(view: View, queue: Queue, since: float) -> list[Connection]:
    """Return the connections without a channel that may have consumed from the queue before `since`.

    A later one did not, and the broker reports 0 channels of it until it refreshes its statistics.
    """
    idle = [
        each for each in view.connections if each.vhost == queue.vhost and each.channels == 0 and has_channels(each)
    ]
    earlier = [each for each in idle if each.connected_at is None or each.connected_at < since]
    return sorted(earlier, key=lambda each: each.client_name or each.name)


def _finding(view: View, queue: Queue, unconsumed: Series[Queue], severity: Severity) -> Finding:
    limits = view.limits(queue).consumers
    recent = last(unconsumed, limits.no_consumer_growing)
    ready, published, seconds = _ready(unconsumed[-1]), delta(recent, "publish"), span(unconsumed)
    history = view.history(queue)
    grows = _grows(recent)
    absent = mqtt_client(queue)
    idle = _idle_connections(view, queue, unconsumed[0].at.wall)
    cancelled = _cancelled(view, queue) if grows else []
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
    warning_after = _warning_after(view, queue)
    early = severity is Severity.INFO and grows and seconds < warning_after
    piled_up = piled_up_seconds(unconsumed)
    ttl = queue.setting("message-ttl")
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
            "expires_after_seconds": ttl / 1000 if _expires_unread(queue) else None,
            "may_be_delay": queue.setting("dead-letter-exchange") is not None and not was_consumed(queue),
            "had_consumer": len(unconsumed) < len(history) and bool(history[-len(unconsumed) - 1].value.consumers),
            "was_consumed": was_consumed(queue),
            "polled": count(queue.stats, "get", "get_no_ack"),
            "returned": min(count(queue.stats, "get"), queue.stats.redeliver or 0),
            "similar_queue": None if was_consumed(queue) else _similar_queue(view, queue),
            "without_consumer_seconds": seconds,
            "piled_up_seconds": piled_up if severity is Severity.WARNING and piled_up > seconds else None,
            "idle_connections": idle_names,
            "cancelled": left,
            "mqtt_client": absent,
            "warning_after_seconds": warning_after,
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=(queue_ref(queue),),
            channels=tuple(each.name for each in cancelled),
            connections=tuple(each.name for each in (*idle, *connections) if each is not None),
            clients=tuple(
                dict.fromkeys(
                    [
                        *([absent] if absent else []),
                        *(each.client_name for each in (*idle, *connections) if each and each.client_name),
                    ]
                )
            ),
        ),
        certainty=Certainty.EARLY if early else Certainty.CERTAIN,
        seen_seconds=seconds,
    )
