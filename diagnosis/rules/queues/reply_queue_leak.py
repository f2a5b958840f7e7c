"""reply-queue-leak: a client declares a queue for each request and does not delete it, so that they only become more.

The law: a queue that is needed is used again, expires, or is deleted. Queues that are named alike or held by one
connection, of which each was used a few times and none goes away, are left behind. All of them are one finding.
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby, pairwise

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.purpose import POLLED
from diagnosis.queue_families import QueueFamily, queue_families
from diagnosis.rules.queues._shared.queue import MAX_NAMED, certainty, queue_refs
from diagnosis.series import count, delta, last, span
from diagnosis.window import Timestamped

NAME = "reply-queue-leak"

_NAMED = 5
_LATEST = 3
"""Divisor of the time of growth: its latest part must show growth, too."""
_FITS = (0.6, 1.6)
"""How far the rate of a client's own counter may be from the rate at which queues come, if the client makes them."""
_PAUSE = 30.0
"""Seconds without a new queue that are no end of the growth."""
_LEAST_RISES = 2
"""Readings with a rise: what is declared at once is no growth. One look has only two readings."""
_TIMES, _CHANNEL_SECONDS = 3, 25.0
_COVERS = 0.5
"""Share of the growth of all queues from which on these queues are its cause."""

_Growth = tuple[Timestamped[int], ...]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the queues that were left behind, by the connection that holds them or else by virtual host."""
    families = sorted(queue_families(view), key=_place)
    for _, group in groupby(families, key=_place):
        found = _finding(view, sorted(group, key=lambda each: -len(each.queues)))
        if found is not None:
            yield found


def _place(family: QueueFamily) -> tuple[str, str]:
    return (family.vhost, family.connection or "")


def _rising(growth: _Growth, gained: int) -> _Growth:
    """Return the readings since the number began to rise, if it rose by enough and still does; else ()."""
    rises = [place for place, (older, newer) in enumerate(pairwise(growth)) if newer.value > older.value]
    if not rises or (len(rises) < _LEAST_RISES and len(growth) > _LEAST_RISES):
        return ()
    run = growth[rises[0] :]
    before = last(run[:-1], max(span(run) / _LATEST, _PAUSE))[0] if len(run) > _LATEST else run[0]
    return run if before.value < run[-1].value and run[-1].value - run[0].value >= gained else ()


def _finding(view: View, families: list[QueueFamily]) -> Finding | None:
    limits = view.thresholds.queues
    first = families[0]
    queues = [queue for each in families for queue in each.queues]
    run = max((_rising(each.growth, limits.reply_gained) for each in families), key=span)
    seconds = span(run)
    gained = run[-1].value - run[0].value if run else 0
    messages = sum(queue.messages or 0 for queue in queues)
    holding = sum(bool(queue.messages) for queue in queues)
    if (not run or seconds < view.thresholds.early) and holding < limits.reply_least and first.connection is None:
        return None
    severity = Severity.WARNING if run and seconds >= limits.reply_for else Severity.INFO
    rate = gained / seconds if seconds else None
    client, basis = _client(view, first, _rate_now(run))
    evidence = [
        Evidence(key="queues", value=len(queues), source=source("/api/queues", "name", "message_stats.publish")),
        Evidence(
            key="messages",
            value=messages,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "messages"),
            facts={"holding": holding},
        ),
    ]
    if run:
        evidence.append(Evidence(key="growth", value=gained, source=source("/api/queues", "name")))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=_subject(first),
        since=run[0].at.iso() if run else None,
        facts={
            "vhost": first.vhost,
            "pattern": first.pattern,
            "other_patterns": [each.pattern for each in families[1:]],
            "queue_count": len(queues),
            "examples": [queue.name for queue in queues[:_NAMED]],
            "messages": messages,
            "consumed": first.connection is not None,
            "private": sum(queue.exclusive is True for queue in queues),
            "client": client,
            "client_by": basis,
            "connection": first.connection,
            "gained": gained if run else None,
            "over_seconds": seconds,
            "watched_seconds": span(first.growth),
            "growth_rate": rate,
            "warning_after_seconds": limits.reply_for,
        },
        certainty=certainty(severity, seconds, limits.reply_for) if run else Certainty.LIKELY,
        seen_seconds=seconds if run else None,
        evidence=tuple(evidence),
        involved=_involved(view, first, queues, client),
    )


def _subject(family: QueueFamily) -> Subject:
    if family.connection is not None:
        return Subject(kind="connection", name=family.connection, vhost=family.vhost)
    return Subject(kind="vhost", name=family.vhost, vhost=family.vhost)


def _involved(view: View, family: QueueFamily, queues: list[Queue], client: str | None) -> Involved:
    own = {each.name for each in view.connections if client is not None and client_name(each) == client}
    connections = (family.connection,) if family.connection else tuple(sorted(own)[:MAX_NAMED])
    return Involved(queues=queue_refs(queues), connections=connections, clients=(client,) if client else ())


def _client(view: View, family: QueueFamily, rate: float | None) -> tuple[str | None, str | None]:
    """Return the client that makes the queues, and what shows it: `consumer` or `rate`; None if that is not known."""
    if family.connection is not None:
        return client_name(view.connection(family.connection), family.connection), "consumer"
    if not rate:
        return None, None
    polling = _fitting(view, family.vhost, rate, *POLLED)
    found = polling or _fitting(view, family.vhost, rate, "publish")
    return (found.pop(), "rate") if len(found) == 1 else (None, None)


def _rate_now(run: _Growth) -> float | None:
    """Return the queues per second in the latest readings, which cover about the same time as those of channels."""
    recent = last(run, _CHANNEL_SECONDS)
    return (recent[-1].value - recent[0].value) / span(recent) if len(recent) > 1 and span(recent) else None


def _fitting(view: View, vhost: str, rate: float, *counters: str) -> set[str]:
    """Return the clients that consume nothing and whose counter rises as fast as the number of queues."""
    serve = {each.connection_name for each in view.every_consumer}
    found = set()
    for channel in view.channels:
        if channel.vhost == vhost and channel.connection_name not in serve and _fits(view, channel, rate, counters):
            found.add(client_name(view.connection(channel.connection_name), channel.connection_name) or channel.name)
    return found


def _fits(view: View, channel: Channel, rate: float, counters: tuple[str, ...]) -> bool:
    if not count(channel.stats, *counters):
        return False
    history = view.channel_history(channel.name)
    times = delta(history, *counters)
    own = times / span(history) if span(history) else 0.0
    return times >= _TIMES and _FITS[0] * rate <= own <= _FITS[1] * rate


def _queues_of(view: View, finding: Finding) -> Iterable[Hashable]:
    for family in queue_families(view):
        if _subject(family) == finding.subject:
            yield from (queue.key for queue in family.queues)


def _queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


def _grows_most(view: View, finding: Finding) -> Iterable[Hashable]:
    gained, seconds = finding.facts["gained"], finding.seen_seconds
    if not isinstance(gained, int) or seconds is None:
        return
    totals = [each.value.queues for each in last(view.window.readings("overview"), seconds)]
    first, final = (totals[0], totals[-1]) if totals else (None, None)
    if first is not None and final is not None and gained >= _COVERS * (final - first):
        yield "growth"


def _grows(_view: View, finding: Finding) -> Iterable[Hashable]:
    if finding.facts.get("gained"):
        yield "growth"


LEFT_BEHIND = Relation(_queues_of, _queue)
"""The cause is a client that leaves queues behind; the consequence is about one of these queues."""
MOST_NEW_QUEUES = Relation(_grows_most, _grows)
"""The queues of the cause are most of those that the cluster gained; the consequence is that it gains queues."""
