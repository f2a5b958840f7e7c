"""consumer-flapping (B17): a queue's consumers come and go all the time.

An application that crashes and restarts, or subscribes for each message. What it held is delivered again each time; on
a quorum queue each coming and going is written to the log. Told from a rolling restart: each is replaced, and replaced
again. Told from bad-ack-loop: there the connection stays.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Consumer, Queue
from diagnosis.closing import FEWEST, Closing, closings
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.kept import kept
from diagnosis.rules.consumers.bad_ack_loop import loops_of
from diagnosis.rules.consumers.follows import names_of
from diagnosis.rules.consumers.refusals import SOME
from diagnosis.rules.consumers.rounds import REFRESH, rounds
from diagnosis.series import delta, span
from diagnosis.turnover import turnover
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, list_consumers, some

NAME = "consumer-flapping"

Place = tuple[str, str]
_OFTEN = 3
"""Each consumer was replaced twice: no rolling restart does that."""
_LONG = 20.0
"""Seconds over which that must have been seen."""


@dataclass(frozen=True, slots=True)
class Flaps:
    """What the latest readings of consumers say of one queue.

    Attributes:
        changes: readings that held others than the one before.
        pairs: readings that were compared.
        all: every consumer that was seen.
        most: the most at a time.
        seconds, since: the time that was looked at.
    """

    queue: Queue
    changes: int
    pairs: int
    all: tuple[Consumer, ...]
    most: int
    seconds: float
    since: Instant


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue whose consumers are not those of a while ago, then those whose consumers are never seen."""
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    if len(readings) < 2:
        return
    told: set[Place] = set()
    touched = _touched(readings)
    bad = loops_of(view) if touched else frozenset()
    for queue in view.queues if touched else ():
        if queue.key not in touched or queue.exclusive:
            continue
        flaps = _flaps(queue, readings)
        limits = view.limits(queue).consumers
        often = flaps.changes >= limits.flapping_changes and flaps.changes > flaps.pairs / 2
        replaced = len(flaps.all) >= 2 * max(1, flaps.most)
        if often and replaced and not {each.connection_name for each in flaps.all} <= bad:
            told.add(queue.key)
            yield _finding(view, flaps, _loop_of(view, flaps))
    reconnects = [loop for loop in closings(view) if loop.whole and loop.alone]
    for queue in view.queues:
        if queue.key in told or not by_nobody(view, queue):
            continue
        loop = next((each for each in reconnects if each.connection.vhost == queue.vhost), None)
        lately = rounds(view, view.history(queue), REFRESH)
        goes_round = (
            span(lately) >= view.limits(queue).early and _was_read(view, queue, lately[0].at) and _turns_over(view)
        )
        if goes_round or (loop is not None and min(loop.delivered, loop.redelivered) >= SOME):
            flaps = _flaps(queue, readings)
            if goes_round and not flaps.all:
                flaps = replace(flaps, seconds=span(lately), since=lately[0].at)
            yield _finding(view, flaps, loop)


def _was_read(view: View, queue: Queue, since: Instant) -> bool:
    """Whether somebody who stayed since then would be known: a consumer that is there must be there twice."""
    parts = (view.window.readings("channels"), view.window.readings("consumers"))
    enough = 2 if view.links(queue) else 1
    return all(sum(seen.at.mono >= since.mono for seen in readings) >= enough for readings in parts)


def by_nobody(view: View, queue: Queue) -> bool:
    """Whether a queue redelivers, and to nobody who stays: its consumers live for less than the time between two looks.

    One that gives messages back is there in each look, and has a channel that got them again.
    """
    if not queue.stats.redeliver or not view.moved(queue, "redeliver"):
        return False
    if any(link.channel and len(view.channel_history(link.channel.name)) > 1 for link in view.links(queue)):
        return False
    return queue.vhost not in kept(view, _polled)


def _polled(view: View) -> frozenset[str | None]:
    """Virtual hosts in which a channel that stays, and consumes from no queue, got messages again."""
    getting = (each for each in view.channels if each.stats.redeliver and not view.queues_served(each.name))
    return frozenset(each.vhost for each in getting if delta(view.channel_history(each.name), "redeliver") > 0)


def _turns_over(view: View) -> bool:
    """Whether connections or channels come and go: of the cluster, as nobody can be named yet."""
    return any(
        found is not None and found.rate * found.lasts >= FEWEST
        for found in (turnover(view, "connection"), turnover(view, "channel"))
    )


def _loop_of(view: View, flaps: Flaps) -> Closing | None:
    """The loop of connections or channels that one of these clients is in."""
    known = {each.name: each for seen in view.window.readings("connections") for each in seen.value}
    names = {client(known.get(each.connection_name or ""), each.connection_name) for each in flaps.all}
    return next((each for each in closings(view) if each.client in names), None)


def _clients(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """Names of those who consumed lately from the queue of a finding."""
    key = (finding.subject.vhost, finding.subject.name)
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    lately = {each.connection_name for seen in readings for each in seen.value if (each.vhost, each.queue) == key}
    known = (each for seen in view.window.readings("connections") for each in seen.value if each.name in lately)
    return {name for each in known for name in (each.name, client(each, each.name))}


CLIENTS_OF_FLAPPING_CONSUMERS = Relation(_clients, names_of)
"""The cause is a queue; what follows is about a client whose consumers of it come and go."""


def _touched(readings: Series[tuple[Consumer, ...]]) -> set[Place]:
    """Queues of which some consumer came or went; consumers that did not change are the same objects."""
    found: set[Place] = set()
    for older, newer in pairwise(readings):
        before, after = {id(each) for each in older.value}, {id(each) for each in newer.value}
        found |= {(each.vhost, each.queue) for each in older.value if id(each) not in after}
        found |= {(each.vhost, each.queue) for each in newer.value if id(each) not in before}
    return found


def _flaps(queue: Queue, readings: Series[tuple[Consumer, ...]]) -> Flaps:
    held = [{_who(each): each for each in seen.value if (each.vhost, each.queue) == queue.key} for seen in readings]
    everyone: dict[tuple[str, str], Consumer] = {}
    for each in held:
        everyone.update(each)
    return Flaps(
        queue=queue,
        changes=sum(older.keys() != newer.keys() for older, newer in pairwise(held)),
        pairs=len(held) - 1,
        all=tuple(everyone[key] for key in sorted(everyone)),
        most=max(len(each) for each in held),
        seconds=readings[-1].at.since(readings[0].at),
        since=readings[0].at,
    )


def _who(consumer: Consumer) -> tuple[str, str]:
    return (consumer.channel_name or "", consumer.tag)


def _how_many(flaps: Flaps, names: list[str]) -> str:
    if not names:
        return "too short-lived to be seen"
    seen = f"{len(flaps.all)} different ones of" if flaps.all else "too short-lived to be seen, those of"
    return f"{seen} {some(map(repr, names))}"


def _finding(view: View, flaps: Flaps, loop: Closing | None) -> FindingReport:
    queue, limits = flaps.queue, view.limits(flaps.queue).consumers
    known = {each.name: each for seen in view.window.readings("connections") for each in seen.value}
    seen = {client(known.get(each.connection_name or ""), each.connection_name) for each in flaps.all}
    names = sorted(seen or ({loop.client} if loop else set()))
    lasts = max(flaps.seconds, loop.lasts if loop else 0.0)
    replaced = len(flaps.all) >= _OFTEN * max(1, flaps.most)
    late = lasts >= limits.flapping_for if loop and not replaced else replaced and lasts >= _LONG
    again = delta(view.history(queue), "redeliver")
    evidence = [
        EvidenceReport(
            what="consumers seen",
            value=f"{len(flaps.all)} different ones in {lasting(flaps.seconds)}, {flaps.most} at a time",
            expected="the same ones",
            source="/api/consumers",
        ),
        EvidenceReport(
            what="readings in which they had changed",
            value=f"{flaps.changes} of {flaps.pairs}",
            source="/api/consumers",
        ),
        EvidenceReport(
            what="redelivered",
            value=f"{amount(again, 'message')} since it is watched",
            expected="near 0",
            source="/api/queues message_stats.redeliver",
        ),
    ]
    if loop:
        evidence.append(
            EvidenceReport(
                what=f"{'connections' if loop.whole else 'channels'} of {loop.client!r}",
                value=f"{loop.rate:.1f} opened and closed a second, for {lasting(loop.lasts)}",
                expected="near 0",
                source="/api/overview churn_rates",
            )
        )
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=(loop.since if loop else flaps.since).iso(),
        summary=(
            f"Consumers of queue {queue.name!r} ({queue.vhost!r}) come and go: {_how_many(flaps, names)} "
            f"in {lasting(flaps.seconds)}"
        ),
        cause=(
            "The application crashes and restarts, or subscribes anew for every few messages. What it held is "
            "delivered again each time; on a quorum queue each coming and going is written to the log on disk."
        ),
        evidence=tuple(evidence),
        next_steps=(
            (
                f"read the log of {some(map(repr, names)) or 'whoever consumes from it'}: a crash on start, an "
                "exception in the handler, a liveness probe that kills it"
            ),
            f"see who consumes, twice: {list_consumers(queue)}",
            "if it subscribes for each message: keep one consumer open, with a prefetch",
        ),
        runbook=runbook(NAME),
    )
