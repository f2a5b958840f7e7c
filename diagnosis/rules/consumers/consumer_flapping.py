"""consumer-flapping (B17): the consumers of a queue connect and disconnect all the time.

The application crashes and restarts, or subscribes for each message. Its unacknowledged messages are redelivered each
time; a quorum queue also writes each subscription to its log. In a rolling restart each consumer is replaced once;
here it is replaced again. In a bad-ack-loop the connection stays open.

An application that crashes on a message and is started again with growing pauses is seen in the queue alone: several
times it delivers after it had no consumer, mostly messages that it delivered before, and nothing is acknowledged.

A client that reconnects at once after each batch is rarely listed, and the queue makes progress, although a good
part of its deliveries comes back. What no lasting consumer returned was returned by consumers that ended.

Of MQTT clients with one client id each ends the connection of the other, so their session is always consumed, by
another connection each time (`replaced_sessions`).

A stream redelivers nothing. There a reader that stores no offset is sent the same messages each time it subscribes.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict, replace
from math import inf

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Consumer, Queue
from diagnosis.churn import churn_rate
from diagnosis.churn_loops import FEWEST, ChurnLoop, churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.memo import per_view
from diagnosis.preconditions import unread
from diagnosis.rules.cluster._shared.link_flow import circulations
from diagnosis.rules.consumers._shared.channel_loops import MIN_PER_CYCLE, loop_evidence
from diagnosis.rules.consumers._shared.comings import (
    LASTING,
    comings_without_acks,
    fruitless_comings,
    recent_clients,
    returning_facts,
    returning_loop,
    seen_connections,
)
from diagnosis.rules.consumers._shared.consequences import connection_names
from diagnosis.rules.consumers._shared.consumer_balances import consumer_balances
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.consumers._shared.redelivery_rounds import (
    REFRESH_SECONDS,
    deliveries,
    only_polled,
    redelivered_partly,
    redelivery_rounds,
)
from diagnosis.rules.consumers._shared.replaced_sessions import ReplacedSession, replaced_session
from diagnosis.rules.consumers._shared.stream_restarts import (
    ReadAgain,
    StreamRestarts,
    read_again,
    reread_facts,
    skipped_messages,
    stream_restarts,
)
from diagnosis.rules.consumers._shared.turnover import (
    ConsumerTurnover,
    QueueKey,
    changed_queues,
    consumer_turnover,
    consumers_by_reading,
    identity,
)
from diagnosis.rules.consumers._shared.unlisted_comings import unlisted_comings
from diagnosis.rules.consumers.bad_ack_loop import bad_ack_connections
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "consumer-flapping"

_GENERATIONS = 3
"""Generations of consumers: each was replaced twice, which no rolling restart does."""
_MIN_SECONDS = 20.0
"""Minimum seconds over which the replacements must have been seen."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge queues whose consumers changed, then those with too short-lived ones; by figures alone without lists."""
    if lacking := tuple(unread(NAME, view, ("consumers", "connections", "channels"))):
        yield from lacking
        yield from unlisted_comings(view, NAME)
        return
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    if len(readings) < 2:
        return
    reported: set[QueueKey] = set()
    for queue in view.queues:
        fruitless = _fruitless(view, queue)
        if fruitless:
            reported.add(queue.key)
            yield _crashes(view, consumer_turnover(view, queue), fruitless)
        session = replaced_session(view, queue)
        if session is not None:
            reported.add(queue.key)
            yield _replacements(view, consumer_turnover(view, queue), session)
        again = stream_restarts(view, queue)
        if again is not None and again.short:
            reported.add(queue.key)
            yield _rereads(view, consumer_turnover(view, queue), again)
    changed = changed_queues(readings)
    bad_acks = bad_ack_connections(view) if changed else frozenset()
    for queue in view.queues if changed else ():
        if queue.key not in changed or queue.exclusive or queue.key in reported:
            continue
        seen = consumer_turnover(view, queue)
        limits = view.limits(queue).consumers
        often = seen.changes >= limits.flapping_changes and seen.changes > seen.comparisons / 2
        # A rolling restart under way has replaced each at most once, beside those that it has not reached.
        replaced = len(seen.consumers) >= (_GENERATIONS if seen.beside else 2) * max(1, seen.max_at_once)
        if often and replaced and not {each.connection_name for each in seen.consumers} <= bad_acks:
            reported.add(queue.key)
            yield _finding(view, seen, _loop_of(view, seen))
    reconnects = [loop for loop in churn_loops(view) if loop.whole and loop.alone]
    for queue in view.queues:
        if queue.key in reported or not _redelivers_to_nobody_known(view, queue):
            continue
        loop = next((each for each in reconnects if each.connection.vhost == queue.vhost), None)
        rounds = redelivery_rounds(view, view.history(queue), REFRESH_SECONDS)
        circulates = (
            span(rounds) >= view.limits(queue).early and _was_read(view, queue, rounds[1].at) and _has_churn(view)
        )
        if circulates or (loop is not None and min(loop.delivered, loop.redelivered) >= MIN_PER_CYCLE):
            seen = consumer_turnover(view, queue)
            if circulates and not seen.consumers:
                seen = replace(seen, seconds=span(rounds), since=rounds[0].at)
            reported.add(queue.key)
            yield _finding(view, seen, loop)
    for queue in view.queues:
        rounds = () if queue.key in reported else _returned_by_ended(view, queue)
        if rounds:
            reported.add(queue.key)
            yield _returns(view, consumer_turnover(view, queue), rounds)
    for queue in view.queues:
        over = None if queue.key in reported else read_again(view, queue)
        if over is not None:
            yield _reads_over(view, consumer_turnover(view, queue), over)


def _fruitless(view: View, queue: Queue) -> Series[Queue]:
    """Return the readings in which consumers came back at least twice, to the same messages, and none of them stays."""
    tail = fruitless_comings(view, queue)
    if not tail or queue.vhost in per_view(view, _polled):
        return ()
    first = next(seen for seen in tail if delta((tail[0], seen), "redeliver"))
    return () if _may_last(view, queue, first.at) else tail


def _may_last(view: View, queue: Queue, since: Instant) -> bool:
    """Return whether a consumer is in every reading since redeliveries were seen, or too few were read to know."""
    listed = zip(view.window.readings("consumers"), consumers_by_reading(view, queue), strict=True)
    ids = [{identity(each) for each in consumers} for seen, consumers in listed if seen.at.mono >= since.mono]
    return len(ids) < 2 or bool(set.intersection(*ids))


def _replacements(view: View, seen: ConsumerTurnover, session: ReplacedSession) -> Finding:
    """Return the finding about a client id of MQTT whose connections end each other."""
    queue = seen.queue
    late = session.seconds >= view.limits(queue).consumers.flapping_for
    involved = _involved(view, queue, ())
    counted = source("/api/queues", "consumers") + source("/api/consumers")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=session.since.iso(),
        facts=_facts(view, seen, [session.client_id])
        | {"session": session.facts(), "watched_seconds": session.seconds},
        evidence=(
            Evidence(key="different", value=session.different, source=counted),
            Evidence(
                key="cluster_churn",
                value=session.rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
            ),
        ),
        involved=replace(involved, connections=session.connections, clients=(session.client_id,)),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=session.seconds,
    )


def _crashes(view: View, seen: ConsumerTurnover, fruitless: Series[Queue]) -> Finding:
    """Return the finding about consumers that end again and again with the same messages unacknowledged."""
    queue, seconds, rounds = seen.queue, span(fruitless), comings_without_acks(fruitless)
    limits = view.limits(queue).consumers
    late = rounds >= LASTING and seconds >= _MIN_SECONDS
    stopped = late and seconds >= limits.flapping_for
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if stopped else Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=fruitless[0].at.iso(),
        # No consumer stays, and none acknowledges, so one that has just come back is one of those that end.
        facts=_facts(view, seen, _latest_clients(view, seen) or recent_clients(view, queue))
        | {"rounds": rounds, "watched_seconds": seconds, "redelivered": delta(fruitless, "redeliver")},
        evidence=(
            Evidence(key="rounds", value=rounds, source=source("/api/queues", "consumers", "message_stats.deliver")),
            Evidence(key="acked", value=0, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")),
            Evidence(
                key="redelivered",
                value=delta(fruitless, "redeliver"),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.redeliver"),
            ),
        ),
        involved=_involved(view, queue, _of_names(view, seen) or seen.consumers),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _returned_by_ended(view: View, queue: Queue) -> Series[Queue]:
    """Return the readings in which consumers that ended returned a good part of what was delivered; else empty."""
    if queue.type == "stream" or not queue.stats.redeliver or not view.moved(queue, "redeliver"):
        return ()
    limits = view.limits(queue)
    rounds = redelivered_partly(view, view.history(queue), limits.interval)
    if span(rounds) < limits.consumers.requeue_mixed_for or not _was_read(view, queue, rounds[1].at):
        return ()
    polled = 2 * delta(rounds, "get") >= delta(rounds, "redeliver") or queue.vhost in per_view(view, _polled)
    if polled or queue.key in circulations(view) or not _has_churn(view):
        return ()
    rate = delta(rounds, "redeliver") / span(rounds)
    return rounds if 2 * _returned_by_lasting(view, queue) < rate else ()


def _returned_by_lasting(view: View, queue: Queue) -> float:
    """Return the messages per second that consumers returned whose channels last; infinite if it is not known."""
    lasting = [
        link.channel.name
        for link in view.links(queue)
        if link.channel is not None and len(view.channel_history(link.channel.name)) > 1
    ]
    if any(link.session for link in view.links(queue)) or any(view.queues_served(name) != 1 for name in lasting):
        return inf
    found = consumer_balances(view, queue)
    return sum(each.rejected / span(view.channel_history(each.link.consumer.channel_name or "")) for each in found)


def _returns(view: View, seen: ConsumerTurnover, rounds: Series[Queue]) -> Finding:
    """Return the finding about consumers that end before they acknowledge all that they were sent."""
    queue, seconds = seen.queue, span(rounds)
    redelivered, late = delta(rounds, "redeliver"), seconds >= view.limits(queue).consumers.flapping_for
    delivered = deliveries(rounds[-1].value) - deliveries(rounds[0].value)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=rounds[0].at.iso(),
        facts=_facts(view, seen, _latest_clients(view, seen))
        | {"watched_seconds": seconds, "redelivered": redelivered, "delivered": delivered},
        evidence=(
            Evidence(
                key="returned",
                value=redelivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.redeliver", "message_stats.deliver_get"),
            ),
            Evidence(
                key="acked",
                value=delta(rounds, "ack"),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.ack"),
            ),
        ),
        involved=_involved(view, queue, _of_names(view, seen)),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _rereads(view: View, seen: ConsumerTurnover, again: StreamRestarts) -> Finding:
    """Return the finding about a reader of a stream that begins at the first message each time and ends too soon."""
    queue = seen.queue
    loop = next((each for each in churn_loops(view) if each.client == again.client), None)
    # Each was replaced more than once, which no rolling restart does.
    late = again.returns > again.at_once and again.seconds >= _MIN_SECONDS
    late = late or (loop is not None and loop.lasts >= view.limits(queue).consumers.flapping_for)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=again.since.iso(),
        facts=_facts(view, seen, [again.client]),
        evidence=(
            Evidence(key="offset", value=again.offset, source=source("/api/consumers", "arguments")),
            Evidence(key="returns", value=again.returns, source=source("/api/queues", "consumers")),
            Evidence(
                key="read_before",
                value=again.delivered,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.deliver") + source("/api/queues", "messages"),
            ),
            *([loop_evidence(loop)] if loop else []),
        ),
        involved=_involved(view, queue, again.readers),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=again.seconds,
    )


def _reads_over(view: View, seen: ConsumerTurnover, over: ReadAgain) -> Finding:
    """Return the finding about a reader that is sent a whole stream again and again, which may be on purpose."""
    queue = seen.queue
    history = view.history(queue)
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=queue_subject(queue),
        since=history[0].at.iso(),
        facts=_facts(view, seen, [over.client]) | {"over": asdict(over), "reread": None},
        evidence=(
            Evidence(key="offset", value=over.offset, source=source("/api/consumers", "arguments")),
            Evidence(
                key="sent",
                value=over.delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver", "message_stats.publish", "messages"),
            ),
        ),
        involved=_involved(view, queue, seen.consumers),
        certainty=Certainty.LIKELY,
        seen_seconds=span(history),
    )


def _latest_clients(view: View, seen: ConsumerTurnover) -> list[str]:
    loops = (each for each in churn_loops(view) if each.whole and each.alone)
    loop = next((each for each in loops if each.connection.vhost == seen.queue.vhost), returning_loop(view, seen.queue))
    return _names(view, seen) or ([loop.client] if loop is not None else [])


def _names(view: View, seen: ConsumerTurnover) -> list[str]:
    """Return the application names of the consumers that ended, sorted; one that only came may stay."""
    known = seen_connections(view)
    latest = {identity(each) for each in consumers_by_reading(view, seen.queue)[-1]}
    ended = (each for each in seen.consumers if identity(each) not in latest)
    found = {client_name(known.get(each.connection_name or ""), each.connection_name) for each in ended}
    return sorted(name for name in found if name)


def _of_names(view: View, seen: ConsumerTurnover) -> list[Consumer]:
    """Return the consumers that came or went, of clients whose consumers end."""
    known, names = seen_connections(view), _names(view, seen)
    return [
        each
        for each in seen.consumers
        if client_name(known.get(each.connection_name or ""), each.connection_name) in names
    ]


def _facts(view: View, seen: ConsumerTurnover, clients: list[str]) -> dict[str, Fact]:
    queue = seen.queue
    return {
        "queue": queue_facts(queue),
        "clients": list(clients),
        "rounds": None,
        "channel_loop": returning_facts(returning_loop(view, queue)),
        "session": None,
        "over": None,
        "reread": reread_facts(stream_restarts(view, queue)),
        "messages": queue.messages,
        "polled": not seen.consumers and only_polled(view.history(queue)),
        "ready": queue.messages_ready or 0,
        "consumers_seen": len(seen.consumers),
        "max_at_once": seen.max_at_once,
        "changes": seen.changes,
        "comparisons": seen.comparisons,
        "watched_seconds": seen.seconds,
        "redelivered": delta(view.history(queue), "redeliver"),
        "delivered": None,
        "clean": False,
        "ended": None,
        "unlisted": False,
        "skipped": None,
        "warning_after_seconds": view.limits(queue).consumers.flapping_for,
    }


def _was_read(view: View, queue: Queue, since: Instant) -> bool:
    """Return whether channels and consumers were read often enough since then to know a lasting consumer.

    `since` is the first reading with redeliveries: at the one before, the consumer may not have been there yet.
    """
    parts = (view.window.readings("channels"), view.window.readings("consumers"))
    enough = 2 if view.links(queue) else 1
    return all(sum(seen.at.mono >= since.mono for seen in readings) >= enough for readings in parts)


def _redelivers_to_nobody_known(view: View, queue: Queue) -> bool:
    """Return whether a queue redelivers, but not to a lasting consumer: its consumers end before the next reading.

    A consumer that requeues messages is in every reading, and its channel counts the redeliveries.
    """
    if not queue.stats.redeliver or not view.moved(queue, "redeliver"):
        return False
    if any(link.channel and len(view.channel_history(link.channel.name)) > 1 for link in view.links(queue)):
        return False
    return queue.vhost not in per_view(view, _polled)


def _polled(view: View) -> frozenset[str | None]:
    """Return the virtual hosts in which a lasting channel without consumers received redeliveries."""
    redelivered = (each for each in view.channels if each.stats.redeliver and not view.queues_served(each.name))
    return frozenset(each.vhost for each in redelivered if delta(view.channel_history(each.name), "redeliver") > 0)


def _has_churn(view: View) -> bool:
    """Whether connections or channels of the cluster open and close; no client can be named yet."""
    return any(
        found is not None and found.rate * found.lasts >= FEWEST
        for found in (churn_rate(view, "connection"), churn_rate(view, "channel"))
    )


def _involved(view: View, queue: Queue, consumers: Iterable[Consumer]) -> Involved:
    known, loop = seen_connections(view), returning_loop(view, queue)
    found = [each.connection_name for each in consumers] + ([loop.connection.name] if loop is not None else [])
    names = tuple(dict.fromkeys(name for name in found if name))
    clients = (known[name].client_name for name in names if name in known)
    return Involved(
        queues=(queue_ref(queue),),
        connections=names,
        clients=tuple(dict.fromkeys(name for name in clients if name)),
    )


def _loop_of(view: View, seen: ConsumerTurnover) -> ChurnLoop | None:
    """Return the loop of channels or connections of one of these clients, if any."""
    names = _names(view, seen)
    return next((each for each in churn_loops(view) if each.client in names), None)


_UNLISTED = ""
"""Stands for clients that no list has, in the queue's finding as in that of the cluster's connections."""


def _clients(view: View, finding: Finding) -> Iterable[Hashable]:
    """Return the names of the clients that recently consumed from the queue of a finding."""
    key = (finding.subject.vhost, finding.subject.name)
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    recent = {each.connection_name for seen in readings for each in seen.value if (each.vhost, each.queue) == key}
    queue = view.queue(*key)
    loop = returning_loop(view, queue) if queue is not None else None
    recent |= {loop.connection.name} if loop is not None else set()
    known = (each for seen in view.window.readings("connections") for each in seen.value if each.name in recent)
    return {name for each in known for name in (each.name, client_name(each))} or {_UNLISTED}


def _churning(view: View, finding: Finding) -> Iterable[Hashable]:
    return {_UNLISTED} if finding.subject.kind == "cluster" else connection_names(view, finding)


CLIENTS_OF_FLAPPING_CONSUMERS = Relation(_clients, _churning)
"""The cause is a queue; the effect is about a client whose consumers of it connect and disconnect."""


def _finding(view: View, seen: ConsumerTurnover, loop: ChurnLoop | None) -> Finding:
    queue, warning_after = seen.queue, view.limits(seen.queue).consumers.flapping_for
    clients = _names(view, seen) or ([loop.client] if loop else _latest_clients(view, seen))
    seconds = max(seen.seconds, loop.lasts if loop else 0.0)
    replaced = len(seen.consumers) >= _GENERATIONS * max(1, seen.max_at_once)
    late = seconds >= warning_after if loop and not replaced else replaced and seconds >= _MIN_SECONDS
    history, skipped = view.history(queue), skipped_messages(view, queue, seen.consumers)
    redelivered = delta(history, "redeliver")
    # Short-lived workers that acknowledge all before they end do so on purpose.
    clean = queue.type != "stream" and not redelivered and delta(history, "ack") > 0
    evidence = [
        Evidence(key="consumers", value=len(seen.consumers), source=source("/api/consumers")),
        Evidence(key="changes", value=seen.changes, source=source("/api/consumers")),
        Evidence(
            key="redelivered",
            value=redelivered,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.redeliver"),
        ),
    ]
    if loop:
        evidence.append(loop_evidence(loop))
    if skipped:
        counters = source("/api/queues", "message_stats.publish", "message_stats.deliver")
        evidence.append(Evidence(key="skipped", value=skipped, unit=Unit.MESSAGES, source=counters))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late and not clean else Severity.INFO,
        subject=queue_subject(queue),
        since=(loop.since if loop else seen.since).iso(),
        facts=_facts(view, seen, clients) | {"clean": clean, "skipped": skipped, "over_seconds": span(history)},
        evidence=tuple(evidence),
        involved=_involved(view, queue, _of_names(view, seen)),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )
