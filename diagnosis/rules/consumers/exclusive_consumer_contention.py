"""exclusive-consumer-contention (B14): a second consumer is refused (403) because the first one consumes exclusively.

The second consumer is a standby that retries, or a new instance while the connection of a dead one still exists. The
broker does not count refusals; they show as channels that it closes with an error text of exactly that length (see
`diagnosis.churn_loops`).

A client that closes its connection at each refusal leaves no such text, and is mostly too brief to be listed. What
remains is that connections come and go, each opens a channel, and none gets, sends or acknowledges a message. If a
queue has an exclusive consumer and counts deliveries to others than it, they may be refused there. That is information,
because a health check looks the same.

A queue through which no message has passed serves as a lock, such as for the election of a leader: the refused clients
wait for it on purpose, so that is information.
Quorum queues ignore the flag. Source: https://www.rabbitmq.com/docs/consumers#exclusivity; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, Subject, Unit, source
from ackscope.snapshot import Consumer
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.memo import per_view
from diagnosis.purpose import DELIVERED
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, MIN_PER_CYCLE
from diagnosis.rules.consumers._shared.channel_loops import (
    error_evidence,
    loop_certainty,
    loop_evidence,
    loop_facts,
    loop_severity,
)
from diagnosis.rules.consumers._shared.consequences import connection_names, queue_key
from diagnosis.rules.consumers._shared.objects import connection_peer
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import count, delta, last

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
    known = per_view(view, _contentions)
    for contention in known:
        yield _finding(view, contention)
    yield from _possible(view, {(each.holder.vhost, each.holder.queue) for each in known})


def _contentions(view: View) -> tuple[_Contention, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[_Contention]:
    exclusive = _exclusive(view)
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


def _exclusive(view: View) -> list[Consumer]:
    own = view.thresholds.own_prefixes
    return [each for each in view.every_consumer if each.exclusive and not each.queue.startswith(own)]


def _possible(view: View, known: set[tuple[str, str]]) -> Iterator[Finding]:
    """Yield queues whose exclusive consumer may keep out clients that come and go."""
    cycles, total = cluster_cycles(view), churn_rate(view, "connection")
    if cycles is None or (cycles.channels or 0.0) < MIN_PER_CYCLE or cycles.messages >= FEW_MESSAGES:
        return
    if total is None or total.lasts < view.thresholds.early:
        return
    loops = [each for each in churn_loops(view) if each.whole]
    for consumer in _exclusive(view):
        here = [each for each in loops if each.connection.vhost == consumer.vhost]
        if (consumer.vhost, consumer.queue) not in known and (here or not loops) and _had_others(view, consumer):
            yield _possible_finding(view, consumer, here, total)


def _had_others(view: View, consumer: Consumer) -> bool:
    """Return whether messages of a queue were delivered to others than its exclusive consumer."""
    queue = view.queue(consumer.vhost, consumer.queue)
    channel = next((each for each in view.channels if each.name == consumer.channel_name), None)
    if queue is None or channel is None or queue.type != "classic" or is_private(queue):
        return False
    recent, least = last(view.history(queue), SKEW_SECONDS), view.limits(queue).queues.loss_least
    return any(
        count(queue.stats, each) - count(channel.stats, each) >= max(least, delta(recent, each))
        for each in ("deliver", "deliver_no_ack")
    )


def _error_text(consumer: Consumer) -> str:
    return f"ACCESS_REFUSED - queue '{consumer.queue}' in vhost '{consumer.vhost}' in exclusive use"


def _refused_clients(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the names of the clients that are refused at the queue of a finding."""
    key = (finding.subject.vhost, finding.subject.name)
    loops = (each.loop for each in per_view(view, _contentions) if (each.holder.vhost, each.holder.queue) == key)
    return {name for loop in loops for name in (loop.connection.name, loop.client)}


CLIENTS_THAT_ARE_REFUSED = Relation(_refused_clients, connection_names)
"""The cause is a queue with an exclusive consumer; the effect is about a client that is refused."""


def _with_refusals(view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.facts["possible"] else queue_key(view, finding)


QUEUE_OF_ONE_CONSUMER = Relation(_with_refusals, queue_key)
"""The cause is a queue whose exclusive consumer keeps out others that try; the effect is about the same queue."""


def _queue_with_refusals(_view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.facts["possible"] else ((finding.subject.vhost, finding.subject.name),)


HOLDER_ACKNOWLEDGES_NOTHING = Relation(queue_key, _queue_with_refusals)
"""The cause is a queue whose consumers acknowledge nothing; the effect is that its exclusive one keeps out another."""


_HOLDER = Evidence(key="holder", source=source("/api/consumers", "exclusive"))


def _holder_facts(view: View, consumer: Consumer) -> dict[str, Fact]:
    holder = view.connection(consumer.connection_name)
    return {
        "queue": {"vhost": consumer.vhost, "name": consumer.queue},
        "holder": {
            "tag": consumer.tag,
            "client": client_name(holder, consumer.connection_name),
            "peer": connection_peer(holder),
            "connection": consumer.connection_name,
        },
    }


def lock_waiters(view: View) -> frozenset[str]:
    """Return the connections of clients that are refused at a queue that serves as a lock."""
    return frozenset(each.loop.connection.name for each in per_view(view, _contentions) if _is_lock(view, each.holder))


def _is_lock(view: View, consumer: Consumer) -> bool:
    queue = view.queue(consumer.vhost, consumer.queue)
    return queue is not None and not queue.messages and not count(queue.stats, "publish", *DELIVERED)


def _finding(view: View, contention: _Contention) -> Finding:
    consumer, loop = contention.holder, contention.loop
    lock = _is_lock(view, consumer)
    holder = view.connection(consumer.connection_name)
    evidence = [_HOLDER, loop_evidence(loop)]
    if loop.error is not None:
        evidence.append(error_evidence(loop, contention.error_text))
    names = [each.client_name for each in (holder, loop.connection) if each and each.client_name]
    return Finding(
        rule=NAME,
        severity=Severity.INFO if lock else loop_severity(view, loop),
        subject=Subject(kind="queue", name=consumer.queue, vhost=consumer.vhost, node=consumer.node),
        since=loop.since.iso(),
        facts={
            **loop_facts(view, loop),
            "possible": False,
            "lock": lock,
            **_holder_facts(view, consumer),
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=(QueueRef(consumer.vhost, consumer.queue),),
            connections=tuple(dict.fromkeys(each for each in (consumer.connection_name, loop.connection.name) if each)),
            clients=tuple(dict.fromkeys(names)),
        ),
        certainty=Certainty.LIKELY if lock else loop_certainty(view, loop),
        seen_seconds=loop.lasts,
    )


def _possible_finding(view: View, consumer: Consumer, loops: list[ChurnLoop], total: ChurnRate) -> Finding:
    holder, clients = view.connection(consumer.connection_name), sorted({each.client for each in loops})
    rate, seconds = sum(each.rate for each in loops) or total.rate, total.lasts
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="queue", name=consumer.queue, vhost=consumer.vhost, node=consumer.node),
        since=total.since.iso(),
        facts={
            "possible": True,
            "reconnecting": list[Fact](clients),
            "cycle_rate": rate,
            "connection": None,
            **_holder_facts(view, consumer),
        },
        evidence=(
            _HOLDER,
            Evidence(
                key="brief",
                value=rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
                facts={"loop_seconds": seconds},
            ),
        ),
        involved=Involved(
            queues=(QueueRef(consumer.vhost, consumer.queue),),
            connections=(consumer.connection_name,) if consumer.connection_name else (),
            clients=tuple(dict.fromkeys([*((holder.client_name,) if holder and holder.client_name else ()), *clients])),
        ),
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
    )
