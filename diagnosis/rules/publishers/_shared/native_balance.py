"""The balance of a queue that AMQP 1.0 clients use, by their links, because the broker counts nothing for it.

    published = what AMQP 0-9-1 published to it, and what came on the links whose messages reach it
    settled   = what AMQP 0-9-1 consumers acknowledged, and what sessions were sent less what they hold
    left      = published - what is in it
    returned  = settled - left: settled, and still there or there again

Outcomes other than "returned" cannot be told apart: an accepted and a rejected message both leave.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from ackscope.counters import MessageStats
from ackscope.findings import Fact, Inconclusive, source
from ackscope.protocols import native_protocol
from ackscope.snapshot import Channel, Queue
from diagnosis.churn import churn_increase
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import queue_names
from diagnosis.ledger import UNCOUNTED
from diagnosis.memo import per_view
from diagnosis.routes import dead_letter_targets
from diagnosis.rules.consumers._shared.sessions import session_flow
from diagnosis.rules.publishers._shared.native_publishers import (
    SESSIONS,
    NativePublisher,
    is_native,
    links_gone_at,
    native_publishers,
)
from diagnosis.rules.publishers._shared.refused_by_queue import NackedPublisher
from diagnosis.series import count, delta, last, life, nearest, span
from diagnosis.view import is_own
from diagnosis.window import Series, Timestamped

BALANCED = source("/api/queues", "messages", "message_stats.publish") + source(
    SESSIONS, "outgoing_unsettled_deliveries", "outgoing_links.delivery_count", "incoming_links.delivery_count"
)
"""The fields of a balance."""


def publishers_to(view: View, queue: Queue) -> tuple[NativePublisher, ...] | None:
    """Return the AMQP 1.0 links whose messages reach a queue; None if messages may come that nothing counts."""
    if queue.vhost in per_view(view, _opaque_vhosts) or queue.key in dead_letter_targets(view) or view.bridges:
        return None
    found = []
    for each in native_publishers(view):
        reached = each.reached(view) if each.connection.vhost == queue.vhost else frozenset()
        if reached is None:
            return None
        if queue.key in reached:
            found.append(each)
    return tuple(found)


def balance(view: View, queue: Queue) -> Series[Queue]:
    """Return a queue at its readings with counters that include AMQP 1.0 clients: publish, deliver and ack (settled).

    Empty if a client may publish or consume unseen.
    """
    links, publishers = [link for link in view.links(queue) if link.is_uncounted], publishers_to(view, queue)
    if publishers is None:
        return ()
    flows = _flows(view, queue, links)
    # Without any known publisher, messages come from somewhere else or from the queue itself: both look the same.
    if flows is None or not (publishers or queue.stats.publish):
        return ()
    began, found = per_view(view, _began_at), list[Timestamped[Queue]]()
    for seen in view.history(queue):
        if seen.at.mono < began:
            continue
        near = [_near(flow, seen, view.thresholds.interval) for flow in flows]
        came = [_came(each, seen, view.thresholds.interval) for each in publishers]
        if None in near or None in came:
            continue
        stats, known = seen.value.stats, [each.stats for each in near if each is not None]
        deliver = count(stats, "deliver", "get") + sum(count(each, "deliver") for each in known)
        counted = MessageStats(
            publish=count(stats, "publish") + sum(each or 0 for each in came),
            deliver=deliver,
            deliver_get=deliver + count(stats, "deliver_no_ack", "get_no_ack"),
            deliver_no_ack=stats.deliver_no_ack,
            get_no_ack=stats.get_no_ack,
            redeliver=stats.redeliver,
            ack=count(stats, "ack") + sum(count(each, "ack") for each in known),
        )
        found.append(Timestamped(seen.at, replace(seen.value, stats=counted)))
    return life(tuple(found))


def refused_links(
    publishers: Iterable[NativePublisher], recent: Series[Queue], number: int
) -> tuple[NackedPublisher, ...]:
    """Return the AMQP 1.0 publishers of a queue with how many of its refusals are theirs at least, most first.

    Args:
        publishers: the links whose messages reach the queue.
        recent: readings of its balance.
        number: messages that it refused between them.
    """
    published, seconds = delta(recent, "publish"), span(recent)
    found = []
    for each in publishers:
        own = delta(last(each.history, seconds), "publish")
        least = number - max(0, published - own)
        if least > 0:
            channel = each.history[-1].value
            found.append(
                NackedPublisher(channel=channel, connection=each.connection, nacked=min(least, own), seconds=seconds)
            )
    return tuple(sorted(found, key=lambda each: (-each.nacked, each.client)))


def with_returns(history: Series[Queue]) -> Series[Queue]:
    """Return a balance whose `redeliver` counts what consumers returned at least, and `ack` what left the queue.

    A queue that grows by more than was published to it got messages from elsewhere, so what left it never falls.
    """
    found: list[Timestamped[Queue]] = []
    left = settled = returned = 0
    for place, seen in enumerate(history):
        older, stats = history[max(0, place - 1)].value, seen.value.stats
        arrived = count(stats, "publish") - count(older.stats, "publish")
        left += max(0, arrived - (seen.value.messages or 0) + (older.messages or 0))
        newly = count(stats, "ack") - count(older.stats, "ack")
        settled += newly
        # What was settled since the reading before may all have been returned, and not more.
        returned = max(returned, min(settled - left, returned + newly))
        counted = replace(stats, redeliver=returned, ack=settled - returned)
        found.append(Timestamped(seen.at, replace(seen.value, stats=counted)))
    return tuple(found)


def _flows(view: View, queue: Queue, links: Iterable[ConsumerPath]) -> list[Series[Channel]] | None:
    """Return what each AMQP 1.0 session of the consumers was sent and settled; None if one is not reported."""
    links = list(links)
    sessions = {link.session.key: link.session for link in links if link.session}
    if any(link.session is None for link in links):
        return None
    if any(each.queue != queue.name or each.settled_by_sender for it in sessions.values() for each in it.consuming):
        return None
    flows = [session_flow(view, each) for each in sessions.values()]
    return flows if all(flows) else None


def _near(flow: Series[Channel], seen: Timestamped[Queue], within: float) -> Channel | None:
    near = nearest(flow, seen.at)
    return near.value if abs(near.at.since(seen.at)) <= within else None


def _came(publisher: NativePublisher, seen: Timestamped[Queue], within: float) -> int | None:
    """Return how many messages came on a link until a reading; None if unknown."""
    history = publisher.history
    if publisher.complete and seen.at.mono < history[0].at.mono - within:
        return 0
    near = _near(history, seen, within)
    return None if near is None else near.stats.publish


def _opaque_vhosts(view: View) -> frozenset[str | None]:
    """Return the virtual hosts in which clients may publish what nothing counts."""
    reported = {session.connection_name for session in view.sessions}
    return frozenset(
        each.vhost
        for each in view.every_connection
        if native_protocol(each.protocol) in UNCOUNTED and not (is_native(each) and each.name in reported)
    )


def _began_at(view: View) -> float:
    """Return since when no publisher can have come and gone unseen, on the monotonic clock."""
    ended = 0.0
    own = any(is_own(each) for each in view.every_connection)
    for older, newer in pairwise(view.window.readings("overview")):
        # Our own probes may close one; see `diagnosis.churn`.
        if churn_increase(older.value, newer.value, "connection_closed") > own:
            ended = newer.at.mono
    return max(ended, links_gone_at(view) or 0.0)


def arrivals_unknown(view: View, rule: str, judged: Callable[[Queue], bool] | None = None) -> Iterator[Inconclusive]:
    """Yield the queues whose AMQP 1.0 consumers may also return what they settle: not every arrival there is counted.

    Args:
        view: the view that is judged.
        rule: its name.
        judged: which queues it judges; all but streams without.
    """
    names = queue_names(queue for queue in per_view(view, _unbalanced) if judged is None or judged(queue))
    if names:
        facts: dict[str, Fact] = {"queues": len(names), "names": names}
        yield Inconclusive(rule=rule, reason="arrivals_unknown", facts=facts, permanent=True)


def _unbalanced(view: View) -> tuple[Queue, ...]:
    return tuple(
        queue
        for queue in view.uncounted_queues
        if queue.type != "stream" and _settles_much(view, queue) and span(balance(view, queue)) < view.thresholds.early
    )


def _settles_much(view: View, queue: Queue) -> bool:
    """Return whether AMQP 1.0 consumers of a queue settle as many messages as a loop would."""
    limits = view.limits(queue)
    for link in view.links(queue):
        flow = session_flow(view, link.session) if link.session else ()
        if span(flow) >= limits.early and delta(flow, "ack") > limits.consumers.requeue_rate * span(flow):
            return True
    return False
