"""exclusive-consumer-contention (B14): a second consumer is refused (403) because the first one consumes exclusively.

The second consumer is a standby that retries, or a new instance while the connection of a dead one still exists. The
broker does not count refusals; they show as channels that it closes with an error text of exactly that length (see
`diagnosis.churn_loops`).
Quorum queues ignore the flag. Source: https://www.rabbitmq.com/docs/consumers#exclusivity; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Evidence, Finding, Involved, QueueRef, Subject, source
from ackscope.snapshot import Consumer
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.channel_loops import (
    error_evidence,
    loop_certainty,
    loop_evidence,
    loop_facts,
    loop_severity,
)
from diagnosis.rules.consumers._shared.consequences import connection_names
from diagnosis.rules.consumers._shared.objects import connection_peer

NAME = "exclusive-consumer-contention"


@dataclass(frozen=True, slots=True)
class _Contention:
    """An exclusive consumer, and a client that is refused because of it."""

    holder: Consumer
    loop: ChurnLoop

    @property
    def error_text(self) -> str:
        """Error text with which the broker refuses the client."""
        return _error_text(self.holder)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Match every queue that has an exclusive consumer with the clients whose requests are refused."""
    for contention in per_view(view, _contentions):
        yield _finding(view, contention)


def _contentions(view: View) -> tuple[_Contention, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[_Contention]:
    own = view.thresholds.own_prefixes
    exclusive = [each for each in view.every_consumer if each.exclusive and not each.queue.startswith(own)]
    loops = churn_loops(view) if exclusive else ()
    for consumer in exclusive:
        for loop in loops:
            holder = view.connection(consumer.connection_name)
            # A client that closes its connection at each refusal is recognised only if it has the holder's client
            # name.
            same_client = holder is not None and loop.whole and loop.client == client_name(holder)
            if loop.connection.vhost == consumer.vhost and (loop.said(_error_text(consumer)) or same_client):
                yield _Contention(consumer, loop)
                break


def _error_text(consumer: Consumer) -> str:
    return f"ACCESS_REFUSED - queue '{consumer.queue}' in vhost '{consumer.vhost}' in exclusive use"


def _refused_clients(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the names of the clients that are refused at the queue of a finding."""
    key = (finding.subject.vhost, finding.subject.name)
    loops = (each.loop for each in per_view(view, _contentions) if (each.holder.vhost, each.holder.queue) == key)
    return {name for loop in loops for name in (loop.connection.name, loop.client)}


CLIENTS_THAT_ARE_REFUSED = Relation(_refused_clients, connection_names)
"""The cause is a queue with an exclusive consumer; the effect is about a client that is refused."""


def _finding(view: View, contention: _Contention) -> Finding:
    consumer, loop = contention.holder, contention.loop
    holder = view.connection(consumer.connection_name)
    evidence = [Evidence(key="holder", source=source("/api/consumers", "exclusive")), loop_evidence(loop)]
    if loop.error is not None:
        evidence.append(error_evidence(loop, contention.error_text))
    names = [each.client_name for each in (holder, loop.connection) if each and each.client_name]
    return Finding(
        rule=NAME,
        severity=loop_severity(view, loop),
        subject=Subject(kind="queue", name=consumer.queue, vhost=consumer.vhost, node=consumer.node),
        since=loop.since.iso(),
        facts={
            **loop_facts(view, loop),
            "queue": {"vhost": consumer.vhost, "name": consumer.queue},
            "holder": {
                "tag": consumer.tag,
                "client": client_name(holder, consumer.connection_name),
                "peer": connection_peer(holder),
                "connection": consumer.connection_name,
            },
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=(QueueRef(consumer.vhost, consumer.queue),),
            connections=tuple(dict.fromkeys(each for each in (consumer.connection_name, loop.connection.name) if each)),
            clients=tuple(dict.fromkeys(names)),
        ),
        certainty=loop_certainty(view, loop),
        seen_seconds=loop.lasts,
    )
