"""prefetch-hoarder (B05): a consumer without prefetch limit holds the whole queue, and the others get nothing.

The queue looks empty, its consumer capacity perfect; the messages lie in the memory of one client, and all of them are
delivered again when it goes. Without a limit is also the risk that this happens: told once a virtual host.
Source: https://www.rabbitmq.com/docs/consumer-prefetch
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Link, RuleResult, View
from diagnosis.hold_time import prefetch
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series
from diagnosis.words import amount, client, close_connection, lasting, list_consumers, some, whose

NAME = "prefetch-hoarder"


@dataclass(frozen=True, slots=True)
class Hoard:
    """One consumer that holds too much of a queue, and the others that hold nothing."""

    queue: Queue
    link: Link
    held: int
    acked: int
    seconds: float
    starving: tuple[Link, ...]
    full: Series[Queue]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue of which very much is held, then list the consumers without a limit."""
    hoards = [hoard for queue in view.queues for hoard in _hoards(view, queue)]
    yield from (_finding(view, hoard) for hoard in hoards)
    told = {hoard.queue.key for hoard in hoards}
    risks: dict[str, list[tuple[Queue, Link]]] = defaultdict(list)
    for queue in view.queues:
        if not queue.consumers or queue.exclusive or queue.auto_delete or queue.type == "stream" or queue.key in told:
            continue
        open_ended = (each for each in view.links(queue) if each.consumer.ack_required and prefetch(view, each) == 0)
        risks[queue.vhost] += [(queue, link) for link in open_ended if view.moved(queue, "deliver")]
    yield from (_risk(vhost, found) for vhost, found in sorted(risks.items()) if found)


def _hoards(view: View, queue: Queue) -> Iterator[Hoard]:
    limits = view.limits(queue)
    much, unacked = limits.consumers.hoard_messages, queue.messages_unacked or 0
    if unacked <= much:
        return
    full = stretch(view.history(queue), lambda older, newer: _holds(older.value, much) and _holds(newer.value, much))
    if span(full) < limits.early:
        return
    for link in view.links(queue):
        held = (link.channel.messages_unacked or 0) if link.channel else 0
        allowed = prefetch(view, link)
        limited = allowed is None or 0 < allowed <= much
        if link.channel is None or limited or link.consumer.ack_required is False:
            continue
        alone = view.queues_served(link.channel.name) == 1
        if not alone or held <= much or held < limits.consumers.hoard_share * unacked:
            continue
        lately = view.channel_history(link.channel.name)
        acked, seconds = delta(lately, "ack"), span(lately)
        if acked and seconds and held / (acked / seconds) < limits.consumers.hoard_work:
            continue
        others = (each for each in view.links(queue) if each is not link and each.channel is not None)
        starving = tuple(each for each in others if each.channel and each.channel.messages_unacked == 0)
        yield Hoard(queue, link, held, acked, seconds, starving, full)


def _holds(queue: Queue, much: int) -> bool:
    return (queue.messages_unacked or 0) > much


def _finding(view: View, hoard: Hoard) -> FindingReport:
    queue, link = hoard.queue, hoard.link
    lasts = span(hoard.full)
    late = lasts >= view.limits(queue).consumers.hoard_for
    who = client(link.connection, link.consumer.connection_name)
    name = link.connection.name if link.connection else link.consumer.connection_name
    others = f", and {amount(len(hoard.starving), 'other consumer')} nothing" if hoard.starving else ""
    limit = "no prefetch limit" if not link.consumer.prefetch_count else f"a prefetch of {link.consumer.prefetch_count}"
    pace = "none" if not hoard.acked else f"{hoard.acked}"
    evidence = [
        EvidenceReport(
            what=whose(link),
            value=f"holds {hoard.held} of {queue.messages_unacked} unacknowledged messages",
            expected="what it can work off in seconds",
            source="/api/channels messages_unacknowledged",
        ),
        EvidenceReport(
            what="acknowledged by it",
            value=f"{pace} in {lasting(hoard.seconds)}",
            source="/api/channels message_stats.ack",
        ),
        EvidenceReport(
            what="prefetch", value=limit, expected="100 to 300 at most", source="/api/consumers prefetch_count"
        ),
    ]
    evidence += [
        EvidenceReport(what=whose(each), value="holds nothing", source="/api/channels messages_unacknowledged")
        for each in hoard.starving[:3]
    ]
    http, pid = close_connection(name, "holds the whole queue") if name else ("", "")
    steps = [f"see who holds what: {list_consumers(queue)}"]
    if name:
        steps.append(
            f"to free the messages, restart {who!r}, or close its connection; all {hoard.held} are delivered again, "
            "with "
            f"redelivered=true: {http}"
        )
        steps.append(f"the same on a node: {pid}")
    steps.append(
        "later: basic.qos in the application before it consumes; for all that forget it, in advanced.config: "
        "[{rabbit, [{default_consumer_prefetch, {false, 250}}]}]"
    )
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=hoard.full[0].at.iso(),
        summary=(
            f"{who!r} holds {amount(hoard.held, 'message')} of queue {queue.name!r} ({queue.vhost!r}){others}: seen "
            "over "
            f"{lasting(lasts)}; {amount(queue.messages_ready or 0, 'message')} waiting"
        ),
        cause=(
            f"Its consumer has {limit}, so the broker sent it all that there was. It works off less than that in "
            f"{lasting(view.limits(queue).consumers.hoard_work)}; nobody else can take them meanwhile, and all of them "
            "are delivered again when it goes."
        ),
        evidence=tuple(evidence),
        next_steps=tuple(steps),
        runbook=runbook(NAME),
    )


def _risk(vhost: str, found: list[tuple[Queue, Link]]) -> FindingReport:
    names = sorted({f"{queue.name!r} ({client(link.connection, link.consumer.tag)})" for queue, link in found})
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=None,
        summary=f"{amount(len(found), 'consumer')} in vhost {vhost!r} without a prefetch limit: {some(names)}",
        cause=(
            "A consumer without limit is sent all that there is: when a backlog builds up, one client gets the "
            "whole of "
            "it into its memory, and the others nothing. Harmless as long as the queue stays short."
        ),
        evidence=(
            EvidenceReport(
                what="consumers with manual acknowledgement and prefetch 0",
                value=some(names, 10),
                expected="none",
                source="/api/consumers prefetch_count, ack_required",
            ),
        ),
        next_steps=("set a prefetch in the application (basic.qos, 100 to 300) before it consumes",),
        runbook=runbook(NAME),
    )
