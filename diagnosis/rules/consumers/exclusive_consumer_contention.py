"""exclusive-consumer-contention (B14): a second consumer is refused, for the first one consumes exclusively (403).

A standby that tries again and again, or a new instance kept out by the ghost of the old one. The broker counts no
refusals; they show as channels that it closes with a text of exactly that length (see `diagnosis.closing`). Quorum
queues ignore the flag. Source: https://www.rabbitmq.com/docs/consumers#exclusivity; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Consumer
from diagnosis.closing import Closing, closings
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.kept import kept
from diagnosis.rules.consumers.follows import names_of
from diagnosis.rules.consumers.refusals import loop_evidence, severity, stop_it, who
from diagnosis.words import client

NAME = "exclusive-consumer-contention"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with an exclusive consumer against those who are refused something."""
    for consumer, loop in kept(view, _Contended).found:
        yield _finding(view, consumer, loop)


class _Contended:
    def __init__(self, view: View) -> None:
        self.found = tuple(_find(view))


def _find(view: View) -> Iterator[tuple[Consumer, Closing]]:
    own = view.thresholds.own_prefixes
    exclusive = [each for each in view.part("consumers") if each.exclusive and not each.queue.startswith(own)]
    loops = closings(view) if exclusive else ()
    for consumer in exclusive:
        text = f"ACCESS_REFUSED - queue '{consumer.queue}' in vhost '{consumer.vhost}' in exclusive use"
        for loop in loops:
            holder = view.connection(consumer.connection_name)
            twin = holder is not None and loop.whole and loop.client == client(holder, None)
            if loop.connection.vhost == consumer.vhost and (loop.said(text) or twin):
                yield consumer, loop
                break


def _refused(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """Names of those who are refused at the queue of a finding."""
    key = (finding.subject.vhost, finding.subject.name)
    mine = (loop for consumer, loop in kept(view, _Contended).found if (consumer.vhost, consumer.queue) == key)
    return {name for loop in mine for name in (loop.connection.name, loop.client)}


CLIENTS_THAT_ARE_REFUSED = Relation(_refused, names_of)
"""The cause is a queue with an exclusive consumer; what follows is about a client that is refused."""


def _finding(view: View, consumer: Consumer, loop: Closing) -> FindingReport:
    holder = view.connection(consumer.connection_name)
    holds = client(holder, consumer.connection_name)
    at = f" at {holder.peer_host}:{holder.peer_port}" if holder and holder.peer_host else ""
    text = f"ACCESS_REFUSED - queue '{consumer.queue}' in vhost '{consumer.vhost}' in exclusive use"
    evidence = [
        EvidenceReport(
            what="the exclusive consumer",
            value=f"{consumer.tag!r} of {holds!r}{at}",
            expected="as intended",
            source="/api/consumers exclusive",
        ),
        loop_evidence(loop),
    ]
    if loop.error is not None:
        evidence.append(
            EvidenceReport(
                what="the broker's error to it",
                value=f"{loop.error} bytes of text, as long as: {text}",
                source="/api/connections send_oct, send_cnt",
            )
        )
    return FindingReport(
        rule=NAME,
        severity=severity(view, loop),
        subject=Subject(kind="queue", name=consumer.queue, vhost=consumer.vhost, node=consumer.node),
        since=loop.since.iso(),
        summary=(
            f"{who(loop)} tries to consume from queue {consumer.queue!r} ({consumer.vhost!r}) {loop.rate:.1f} times a "
            f"second and is refused: {holds!r} consumes from it exclusively"
        ),
        cause=(
            "basic.consume with exclusive=true keeps everybody else out (403 ACCESS_REFUSED, which closes the "
            "channel). "
            "The other one is a standby that tries again and again, or a new instance while the old one still holds on."
        ),
        evidence=tuple(evidence),
        next_steps=(
            (
                f"is {holds!r}{at} the one that should consume, and does it work? if it is a ghost, close its "
                "connection: "
                "rabbitmqctl list_connections pid name client_properties, then rabbitmqctl close_connection '<PID>' "
                "ghost"
            ),
            (
                "for one consumer with standbys, use a single active consumer (queue argument "
                "x-single-active-consumer) "
                "and consume without exclusive=true"
            ),
            *stop_it(loop, "exclusive consumer contention"),
        ),
        runbook=runbook(NAME),
    )
