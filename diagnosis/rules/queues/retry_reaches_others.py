"""retry-reaches-others: each retry of a queue is delivered to other queues too, which got the message already.

A consumer rejects a message, it waits in a delay queue, and expires into an exchange. If that exchange routes its key
to more queues than the one that rejected it, each of them gets a copy with every round. Dead letters are not counted as
published, so copies are what such a queue gave to its consumers for good and stores beyond what was published to it.
Deliveries are not compared: dead letters of quorum queues count as redelivered where they arrive (seen on 4.3.6).
Source: https://www.rabbitmq.com/docs/dlx#routing
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, Relation, RuleResult, View
from diagnosis.ledger import levels
from diagnosis.purpose import dead_letters_received
from diagnosis.relations import INVOLVED_QUEUES
from diagnosis.routes import (
    Place,
    bound_keys,
    dead_lettering,
    dead_letters_from,
    dead_letters_to,
    is_delay,
    matches,
    message_keys,
    targets,
)
from diagnosis.rules.consumers._shared.consumer_balances import consumer_balances
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import (
    MAX_NAMED,
    involved_queue,
    queue_refs,
    queue_subject,
    queue_with_policy,
)
from diagnosis.series import span, stretch
from diagnosis.window import Series

NAME = "retry-reaches-others"

_FEW = 0.1
"""Share of the rejected messages up to which the counters of a queue or consumer that rejects none may differ."""
_ARGUMENTS = ("x-dead-letter-exchange", "x-dead-letter-routing-key")
"""Arguments that win over a policy."""


@dataclass(frozen=True, slots=True)
class _Copies:
    """What came into a queue that is no source of the retries.

    Attributes:
        count: minimum of copies; 0 if none is proven, None if unknown.
        total: messages that came in without a publish since the counters began, of whatever kind.
        seconds, since: time over which they were counted, and its start.
    """

    queue: Queue
    count: int | None
    total: int
    seconds: float
    since: str | None

    def facts(self) -> dict[str, Fact]:
        rate = self.count / self.seconds if self.count and self.seconds else None
        return {"name": self.queue.name, "copies": self.count or 0, "rate": rate, "total": self.total}


@dataclass(frozen=True, slots=True)
class _DeadLetters:
    """What the consumers of a queue rejected.

    Attributes:
        count: maximum of them; requeued messages count too.
        seconds: over which time.
        expires: whether messages may also leave it without a consumer.
    """

    count: int
    seconds: float
    expires: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that dead-letters to an exchange which leads to several queues."""
    for delay in dead_lettering(view):
        if not delay.setting("dead-letter-exchange") or len(dead_letters_to(view, delay) or ()) < 2:
            continue
        reached = {each.key: beside for each in _sources(view, delay) if (beside := _beside(view, each, delay))}
        sources = [queue for place in sorted(reached) if (queue := view.queue(*place)) is not None]
        places = frozenset[Place]().union(*reached.values())
        others = [queue for place in places if (queue := view.queue(*place)) is not None]
        # Thousands of queues may be bound to one exchange.
        judged = sorted(others, key=lambda each: (-(each.stats.publish or 0), each.key))[:MAX_NAMED]
        left = {each.key: _dead_letters(view, each) for each in sources}
        found = (_copies(view, each, delay, left) for each in judged if _published_too(sources, each))
        copies = [each for each in found if each is not None]
        if copies:
            yield _finding(view, delay, sources, copies, list(left.values()))


def _sources(view: View, delay: Queue) -> tuple[Queue, ...]:
    """Return the queues whose dead letters leave through a delay queue; a queue that delays nothing is its own."""
    return _feeding(view, delay) if is_delay(view, delay) else (delay,)


def _feeding(view: View, queue: Queue) -> tuple[Queue, ...]:
    """Return the queues whose dead letters come into a queue, also through delay queues and from itself."""
    seen: set[Place] = set()
    found: list[Queue] = []
    following = [queue]
    while following:
        at = following.pop()
        itself = at.key in (dead_letters_to(view, at) or ()) and not is_delay(view, at)
        for each in (*dead_letters_from(view, at), *((at,) if itself else ())):
            if each.key not in seen:
                seen.add(each.key)
                (following if is_delay(view, each) else found).append(each)
    return tuple(found)


def _beside(view: View, origin: Queue, delay: Queue) -> frozenset[Place]:
    """Return the queues that get the retries of a queue from a delay queue, beside itself; empty if no retry."""
    found: set[Place] = set()
    for key in _leaving(view, origin, delay):
        reached = targets(view, delay.vhost, str(delay.setting("dead-letter-exchange")), key) or frozenset()
        if origin.key in reached:
            found |= reached - {origin.key, delay.key}
    queues = ((place, view.queue(*place)) for place in found)
    return frozenset(place for place, queue in queues if queue is not None and not is_delay(view, queue))


def _leaving(view: View, origin: Queue, delay: Queue) -> frozenset[str]:
    """Return routing keys with which dead letters of a queue leave a delay queue, one for each way they may take."""
    seen = {(origin.key, key) for key in _own(view, origin, str(delay.setting("dead-letter-exchange")))}
    following = list(seen)
    left: set[str] = set()
    while following:
        place, key = following.pop()
        queue = view.queue(*place)
        if queue is None or not (queue is origin or is_delay(view, queue)):
            continue
        exchange, other = queue.setting("dead-letter-exchange"), queue.setting("dead-letter-routing-key")
        key = other if isinstance(other, str) else key
        if queue is delay:
            left.add(key)
        elif isinstance(exchange, str):
            further = {(each, key) for each in targets(view, queue.vhost, exchange, key) or ()} - seen
            seen |= further
            following += further
    return frozenset(left)


def _own(view: View, queue: Queue, exchange: str) -> frozenset[str]:
    """Return examples of the keys of a queue's messages: each key; of a pattern, those that an exchange tells apart."""
    bound = bound_keys(view, queue.vhost, exchange)
    found: set[str] = set()
    for pattern in message_keys(view, queue):
        if "*" not in pattern and "#" not in pattern:
            found.add(pattern)
            continue
        made = {_example(pattern), *(_example(each) for each in bound), *(_both(pattern, each) for each in bound)}
        found |= {key for key in made if matches(pattern, key)}
    return frozenset(found)


def _example(pattern: str) -> str:
    """Return a key that a pattern matches."""
    return ".".join("any" if word in ("*", "#") else word for word in pattern.split("."))


def _both(one: str, other: str) -> str:
    """Return a key made of the words of two patterns; of those with wildcards, the word of the other one."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return _example(".".join(theirs if mine in ("*", "#") else mine for mine, theirs in pairs))


def _published_too(sources: Iterable[Queue], other: Queue) -> bool:
    """Return whether messages of the sources are published to another queue; presumed if none are published."""
    return bool(other.stats.publish) or not any(each.stats.publish for each in sources)


def _copies(view: View, other: Queue, delay: Queue, left: Mapping[Place, _DeadLetters]) -> _Copies | None:
    """Return the copies that came into a queue; None if the retries demonstrably do not.

    `left` has the dead letters of each source.
    """
    limits, history = view.limits(other).queues, _known(view, other)
    whole = balance(history)
    if whole is None or not whole.seconds:
        return _Copies(other, None, 0, 0.0, None)
    # What it rejects itself and gets back cancels out. Dead letters of queues that are no source do not.
    feeding = [each for each in _feeding(view, other) if each is not other and each.key not in left]
    came = -whole.missing - sum(_dead_letters(view, each).count for each in feeding)
    dead = [each for place, each in left.items() if place != other.key]
    most = sum(each.count for each in dead)
    waited = None if delay.key in left else balance(_known(view, delay))
    if waited is not None:
        came -= waited.published
        most += max(0, -waited.stored)
    unsure = max(limits.loss_least - 1, limits.loss_skew * max(whole.published, whole.consumed) / whole.seconds)
    expected = sum(each.count * whole.seconds / each.seconds for each in dead if each.seconds)
    if came <= unsure < expected / 2 and other.setting("message-ttl") is None:
        return None
    # What expires in a source and comes back is in none of its counters.
    copies = came if any(each.expires for each in dead) else min(came, most)
    total = 0 if feeding else dead_letters_received(other)
    return _Copies(other, copies if copies > unsure else 0, total, whole.seconds, history[0].at.iso())


def _known(view: View, queue: Queue) -> Series[Queue]:
    """Return the latest readings of a queue whose lengths are known."""
    return stretch(
        view.history(queue), lambda older, newer: levels(older.value) is not None and levels(newer.value) is not None
    )


def _dead_letters(view: View, queue: Queue) -> _DeadLetters:
    series = _known(view, queue)
    found = balance(series)
    expires = any(queue.setting(each) is not None for each in ("message-ttl", "max-length", "max-length-bytes"))
    return _DeadLetters(0 if found is None else found.rejected, span(series), expires)


def _finding(
    view: View, delay: Queue, sources: list[Queue], copies: list[_Copies], dead: list[_DeadLetters]
) -> Finding:
    proven = [each for each in copies if each.count]
    copies = sorted(copies, key=lambda each: (-(each.count or 0), each.queue.key))
    seconds = min((each.seconds for each in proven), default=0.0)
    lasting = bool(proven) and seconds >= view.thresholds.early
    rejected, watched = sum(each.count for each in dead), max(each.seconds for each in dead)
    rejecting = [queue for queue, each in zip(sources, dead, strict=True) if each.count > _FEW * rejected]
    links = [link for each in rejecting for link in _rejecting(view, each)]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=queue_subject(delay),
        since=min((each.since for each in proven if each.since), default=None),
        facts={
            "queue": queue_with_policy(view, delay),
            "itself": delay in sources,
            "exchange": delay.setting("dead-letter-exchange"),
            "key": delay.setting("dead-letter-routing-key"),
            "by_argument": not delay.arguments.keys().isdisjoint(_ARGUMENTS),
            "ttl_ms": delay.setting("message-ttl"),
            "sources": [each.name for each in sources[:MAX_NAMED]],
            "rejecting": [each.name for each in rejecting[:MAX_NAMED]],
            "clients": client_names(links),
            "others": [each.facts() for each in copies[:MAX_NAMED]],
            "copies": sum(each.count or 0 for each in proven),
            "over_seconds": seconds,
            "rejected_rate": rejected / watched if watched else None,
            "warning_after_seconds": view.thresholds.early,
        },
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY if proven else Certainty.LIKELY,
        seen_seconds=seconds if proven else None,
        evidence=tuple(_evidence(proven, rejected, watched)),
        involved=involved_queue(delay, links, queue_refs(_named(delay, sources, copies))),
    )


def _rejecting(view: View, queue: Queue) -> list[ConsumerPath]:
    """Return the consumers of a queue that rejected messages, by their channels; empty if it may be any of several."""
    links, known = view.links(queue), consumer_balances(view, queue)
    if len(known) == len(links):
        most = max((each.rejected for each in known), default=0)
        return [each.link for each in known if each.rejected > _FEW * most]
    return list(links) if len(client_names(links)) == 1 else []


def _named(delay: Queue, sources: list[Queue], copies: list[_Copies]) -> list[Queue]:
    """Return the other queues of a finding, each once."""
    found = {each.key: each for each in (*sources, *(each.queue for each in copies)) if each is not delay}
    return list(found.values())


def _evidence(proven: list[_Copies], rejected: int, watched: float) -> Iterator[Evidence]:
    yield Evidence(
        key="route", source=source("/api/queues", "arguments", "effective_policy_definition") + source("/api/bindings")
    )
    counters = source("/api/queues", "message_stats.ack", "messages", "message_stats.publish")
    for each in proven[:MAX_NAMED]:
        yield Evidence(
            key="copied",
            value=each.count,
            unit=Unit.MESSAGES,
            source=counters,
            facts={"other": each.queue.name, "total": each.total, "counted_seconds": each.seconds},
        )
    if rejected:
        yield Evidence(
            key="rejected",
            value=rejected,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.deliver", "message_stats.ack", "messages_unacknowledged"),
            facts={"watched_seconds": watched},
        )


def _others(_view: View, finding: Finding) -> Iterable[Hashable]:
    others = finding.facts["others"]
    return [(finding.subject.vhost, each["name"]) for each in others] if isinstance(others, list) else ()


COPIES_INTO = Relation(_others, INVOLVED_QUEUES.of_other)
"""The cause is a retry that reaches other queues; the consequence is about one of them."""
