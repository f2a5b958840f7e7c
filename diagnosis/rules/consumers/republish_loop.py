"""republish-loop: the consumers of a queue, or of several, publish to them about as many messages as they acknowledge.

A client that retries by a copy to the same queue acknowledges each message, so the queue looks healthy, and nothing is
ever done. Channels do not say to which queue they publish, but a queue cannot get more than all channels publish. What
it gets beyond the publishes of other clients comes from its own consumers. Where the Prometheus endpoints were read,
publishes of others to exchanges that do not lead to the queue do not count. Dead letters are not counted as published.
The same holds for a queue together with those whose dead letters come to it, and for several queues that feed each
other. A client that polls dead letters (basic.get) and publishes them to their queue again is no consumer; it is known
by the number of messages that it polled.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.exchange_publishes import ENDPOINT
from diagnosis.facts import client_name, queue_facts
from diagnosis.memo import per_view
from diagnosis.purpose import CONSUMED, POLLED
from diagnosis.routes import Place, dead_lettering, dead_letters_to
from diagnosis.rules.consumers._shared.client_publishes import (
    ClientPublishes,
    client_publishes,
    owner,
    published_elsewhere,
    since_first_reading,
)
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.rules.queues._shared.message_balance import balance, latest_run
from diagnosis.series import count, delta, span
from diagnosis.window import Series

NAME = "republish-loop"

_SHARE = 0.7
"""Share of the acknowledged messages that are published to the queue again."""
_MOST_QUEUES = 5
_CHANGE, _CHANGE_MESSAGES = 0.3, 3
"""Share and number by which the messages of several queues may change in total, because they are read at one time."""


@dataclass(frozen=True, slots=True)
class _Circle:
    """Queues whose consumers publish to them: messages over a time.

    Attributes:
        queues: the consumed ones first.
        consumed: how many of them are judged by their acknowledgements; dead letters of the others lead back.
        takers: names of the clients that take messages from these and publish, or of their connections.
        elsewhere: messages that others published to exchanges that do not lead there; not in `by_others`.
        acked: messages that left the consumed ones by a client.
        since: time of the first reading.
        held: messages of all of them at each reading.
    """

    queues: tuple[Queue, ...]
    consumed: int
    takers: frozenset[str | None]
    since: Instant
    over_seconds: float
    published: int
    by_others: int
    elsewhere: int
    again: int
    acked: int
    held: list[int]

    @property
    def most(self) -> int:
        """The most messages that the queues held in total."""
        return max(self.held)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue whose messages clients take, then those that may feed each other."""
    for circle in per_view(view, _circles):
        yield _finding(view, circle)


def circling_queues(view: View) -> frozenset[Place]:
    """Return the queues whose consumers publish to them again what they take."""
    return frozenset(each.key for circle in per_view(view, _circles) for each in circle.queues[: circle.consumed])


def _circles(view: View) -> tuple[_Circle, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[_Circle]:
    made = client_publishes(view)
    if made is None:
        return
    rest: dict[str, list[Queue]] = defaultdict(list)
    for queue in view.queues:
        polled = not queue.consumers and count(queue.stats, *POLLED) and any(view.moved(queue, it) for it in POLLED)
        if queue.type == "stream" or not (polled or (queue.consumers and view.moved(queue, "ack"))):
            continue
        found = _circle(view, (queue,), 1, made) if queue.stats.publish and not polled else None
        if found is None and (leading := _leading_to(view, queue)):
            found = _circle(view, (queue, *leading), 1, made)
        if found is not None:
            yield found
        elif not (polled or queue.exclusive or queue.auto_delete):
            rest[queue.vhost].append(queue)
    for _, queues in sorted(rest.items()):
        found = _circle_of_several(view, queues, made)
        if found is not None:
            yield found


def _leading_to(view: View, queue: Queue) -> tuple[Queue, ...]:
    """Return the queues whose dead letters all come to one queue: delay queues, and those whose consumers reject."""
    found = per_view(view, _sources).get(queue.key, ())
    return tuple(each for each in found if each.key != queue.key and view.moved(each, "publish"))


def _sources(view: View) -> dict[Place, list[Queue]]:
    found: dict[Place, list[Queue]] = defaultdict(list)
    for queue in dead_lettering(view):
        reached = dead_letters_to(view, queue) or ()
        if len(reached) == 1:
            found[next(iter(reached))].append(queue)
    return found


def _circle_of_several(view: View, queues: list[Queue], made: ClientPublishes) -> _Circle | None:
    """Return queues that each get most of their messages from the consumers of all of them; None if there are not two.

    Each of them is then fed by one of them, so messages go round. A request and its reply do so as well, but their
    number changes; that of messages that go round for ever does not.
    """
    if not _hold_any(queues):
        return None
    found = sorted(queues, key=lambda queue: queue.name)
    while len(found) > 1:
        own = _consumers_of(view, found)
        others = made.others(found[0].vhost, own)
        left = [queue for queue in found if _is_fed(view, queue, others, made)]
        if len(left) == len(found):
            break
        found = left
    if not 1 < len(found) <= _MOST_QUEUES:
        return None
    circle = _circle(view, tuple(found), len(found), made)
    return circle if circle is not None and _is_constant(circle.held) else None


def _is_fed(view: View, queue: Queue, others: int, made: ClientPublishes) -> bool:
    """Return whether a queue gets more than all clients outside published, and that is most of what it acknowledges."""
    history = since_first_reading(view, queue, made, view.thresholds.interval)
    if len(history) < 2 or not span(history):
        return False
    published, acked = delta(history, "publish"), delta(history, *CONSUMED)
    unsure = view.limits(queue).queues.loss_skew * (published + others) / span(history)
    quick = acked >= view.limits(queue).consumers.republish_rate * span(history)
    return quick and published - others - unsure >= _SHARE * (acked - unsure)


def _consumers_of(view: View, queues: Iterable[Queue]) -> set[str | None]:
    return {owner(view, link.consumer.connection_name) for queue in queues for link in view.links(queue)}


def _hold_any(queues: Iterable[Queue]) -> bool:
    """Return whether messages can go round in some queues now; cheap, so that busy queues need no history."""
    return any(queue.messages for queue in queues)


def _is_constant(held: list[int]) -> bool:
    return max(held) <= (1 + _CHANGE) * min(held) + _CHANGE_MESSAGES


def _held(histories: Sequence[Series[Queue]]) -> list[int]:
    """Return how many messages some queues held in total at each reading."""
    length = min(map(len, histories))
    readings = zip(*(history[-length:] for history in histories), strict=True)
    return [sum(seen.value.messages or 0 for seen in each) for each in readings]


def _circle(view: View, queues: tuple[Queue, ...], consumed: int, made: ClientPublishes) -> _Circle | None:
    """Return how the consumers of some queues publish to them, if they do with nearly all that they acknowledge.

    Args:
        view: the view that is being judged.
        queues: those that are judged by their acknowledgements first.
        consumed: how many these are.
        made: what all clients published.
    """
    if not _hold_any(queues):
        return None
    queue, vhost = queues[0], queues[0].vhost
    histories = [since_first_reading(view, each, made, view.thresholds.interval) for each in queues]
    limits, history = view.limits(queue).consumers, histories[0]
    if len(history) < 2 or span(history) < view.thresholds.early:
        return None
    skew = view.limits(queue).queues.loss_skew
    takers = _consumers_of(view, queues[:consumed]) or made.pollers(view, queue, skew)
    if not takers or None in takers:
        return None
    elsewhere = published_elsewhere(view, queues, takers, made)
    by_others = made.others(vhost, takers) - elsewhere
    published = sum(delta(each, "publish") for each in histories)
    settled = sum(delta(each, *CONSUMED) for each in histories)
    # Both are refreshed every 5 s, each at its own time.
    unsure = skew * (published + by_others) / span(history)
    again = int(min(published - by_others - unsure, made.of(vhost, takers)))
    held = _held(histories)
    if min(held) == 0:
        # Messages that go round never leave the queues empty.
        return None
    # Where they wait between two rounds, the rounds are seen in the queue alone, which is remembered for longer.
    delayed = len(queues) > consumed
    acked = sum(delta(each, *CONSUMED) for each in histories[:consumed])
    watched = delta(view.history(queue), *CONSUMED) if delayed else acked
    turns = watched >= limits.republish_rounds * consumed * max(1, *held)
    quick = acked >= limits.republish_rate * span(history)
    if not quick or not turns or again < _SHARE * (settled - unsure):
        return None
    if delayed and _came_back(history) < _SHARE * again:
        return None
    seconds = span(history)
    return _Circle(
        queues, consumed, frozenset(takers), history[0].at, seconds, published, by_others, elsewhere, again, acked, held
    )


def _came_back(history: Series[Queue]) -> int:
    """Return how many messages came to a queue without a publish; one that is emptied once gets none."""
    whole = balance(history)
    return -whole.missing if whole is not None else 0


def _finding(view: View, found: _Circle) -> Finding:
    queue, seconds = found.queues[0], _seen(view, found)
    limits = view.limits(queue).consumers
    links = [link for each in found.queues for link in view.links(each)]
    own = [link for each in found.queues[: found.consumed] for link in view.links(each)]
    pollers = [] if own else _connections(view, found)
    involved = involved_consumers(found.queues, links)
    late = seconds >= limits.republish_for
    others: list[Fact] = [each.name for each in found.queues[1:]]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=found.since.iso(),
        facts={
            "queue": queue_facts(queue),
            "others": others,
            "delayed": len(found.queues) > found.consumed,
            "rejected": len(found.queues) > found.consumed and any(each.consumers for each in found.queues[1:]),
            "polled": not own,
            "clients": client_names(own) or sorted({client_name(each, each.name) or each.name for each in pollers}),
            "consumer": process_facts(own[0]) if own else None,
            "acked": found.acked,
            "published": found.published,
            "by_others": found.by_others,
            "again": found.again,
            "most": found.most,
            "rounds": found.acked / found.consumed / max(1, found.most),
            "over_seconds": found.over_seconds,
            "warning_after_seconds": limits.republish_for,
        },
        evidence=(
            Evidence(
                key="published",
                value=found.published,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="by_others",
                value=found.by_others,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.publish"),
            ),
            *_elsewhere(found),
            Evidence(
                key="acked", value=found.acked, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")
            ),
            Evidence(key="most", value=found.most, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
        ),
        involved=replace(
            involved,
            connections=tuple(dict.fromkeys((*(each.name for each in pollers), *involved.connections))),
            clients=tuple(
                dict.fromkeys((*(each.client_name for each in pollers if each.client_name), *involved.clients))
            ),
        ),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _elsewhere(found: _Circle) -> Iterator[Evidence]:
    if found.elsewhere:
        metric = "rabbitmq_detailed_channel_messages_published_total"
        yield Evidence(key="elsewhere", value=found.elsewhere, unit=Unit.MESSAGES, source=source(ENDPOINT, metric))


def _connections(view: View, found: _Circle) -> list[Connection]:
    """Return the connections of the clients that take the messages."""
    own = (each for each in view.connections if each.vhost == found.queues[0].vhost)
    return [each for each in own if owner(view, each.name) in found.takers]


def _seen(view: View, found: _Circle) -> float:
    """Return how long the first queue has been as quick; queues are remembered for longer than channels."""
    least = 0.5 * found.acked / found.consumed / found.over_seconds
    history, interval = view.history(found.queues[0]), view.limits(found.queues[0]).interval
    run = latest_run(history, interval, lambda pair: delta(pair, *CONSUMED) >= least * span(pair))
    return max(span(run), found.over_seconds)
