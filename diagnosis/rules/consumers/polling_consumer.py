"""polling-consumer (B12): a client asks an empty queue again and again (basic.get) instead of consuming.

Each question costs the broker as much as a message. Source: https://www.rabbitmq.com/docs/consumers#polling
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.series import delta, last, span, steps
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, some

NAME = "polling-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that was asked for a message and had none."""
    for queue in view.queues:
        if not queue.stats.get_empty or not view.moved(queue, "get_empty"):
            continue
        limits = view.limits(queue)
        lately = last(view.history(queue), limits.early)
        rates = [
            delta((older, newer), "get_empty") / newer.at.since(older.at)
            for older, newer in steps(lately, limits.interval)
        ]
        if rates and span(lately) >= limits.early and min(rates) > limits.consumers.polling_rate:
            yield _finding(view, queue, lately)


def _pollers(view: View) -> list[str]:
    """Clients whose channels found some queue empty lately, most often first."""
    found: dict[str, int] = {}
    for channel in view.channels:
        if channel.stats.get_empty:
            asked = delta(view.channel_history(channel.name), "get_empty")
            who = client(view.connection(channel.connection_name), channel.connection_name)
            if asked:
                found[who] = found.get(who, 0) + asked
    return sorted(found, key=lambda who: (-found[who], who))


def _finding(view: View, queue: Queue, lately: Series[Queue]) -> FindingReport:
    seconds = span(lately)
    empty, got = delta(lately, "get_empty"), delta(lately, "get", "get_no_ack")
    pollers = _pollers(view)
    by = f" by {some(repr(who) for who in pollers)}" if pollers else ""
    evidence = [
        EvidenceReport(
            what="polls that found nothing",
            value=f"{empty} in {lasting(seconds)}, {empty / seconds:.0f} a second",
            expected="near 0",
            source="/api/queues message_stats.get_empty",
        ),
        EvidenceReport(
            what="polls that found a message",
            value=f"{got} in {lasting(seconds)}",
            source="/api/queues message_stats.get, get_no_ack",
        ),
        EvidenceReport(
            what="consumers", value=f"{queue.consumers}", expected="at least 1", source="/api/queues consumers"
        ),
    ]
    if pollers:
        evidence.append(
            EvidenceReport(
                what="clients that poll", value=some(pollers, 5), source="/api/channels message_stats.get_empty"
            )
        )
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=lately[0].at.iso(),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) is polled{by} {empty / seconds:.0f} times a second for nothing: "
            f"{amount(got, 'message')} taken in {lasting(seconds)}"
        ),
        cause=(
            "A client asks with basic.get in a loop. Each question is a round trip and work for the queue, whether "
            "there "
            "is a message or not; a consumer is sent messages when there are some, and costs nothing when there are "
            "none."
        ),
        evidence=tuple(evidence),
        next_steps=(
            "find the client: rabbitmqctl list_connections user peer_host peer_port client_properties",
            "let it consume (basic.consume with a prefetch) instead of basic.get",
            "until then: let it wait longer after each empty answer",
        ),
        runbook=runbook(NAME),
    )
