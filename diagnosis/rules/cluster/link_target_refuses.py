"""link-target-refuses (E20): a shovel or federation link cannot deliver, because its target refuses the messages.

Two laws, by how the link acknowledges at its source:

* after the confirm of its target: it requeues what is refused and gets it again at once, so the source redelivers the
  same messages again and again and hardly any leave;
* earlier, or never: the source is drained, while the target, at its limit, refuses what arrives. Those are lost.

The target may be in another cluster. Then only the first law can be seen, at the source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from ackscope.topology import Link
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.rules.cluster._shared.link_flow import (
    SHOVEL,
    Circulation,
    Place,
    circulations,
    is_here,
    link_sources,
    link_targets,
)
from diagnosis.rules.consumers._shared.objects import involved_consumers
from diagnosis.rules.publishers._shared.overflow import full_readings, refused
from diagnosis.series import delta, last, span
from diagnosis.window import Series

NAME = "link-target-refuses"

_SHARE = 0.5
"""Least share of what a link moved that its target must have refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusingTarget:
    """A queue of this cluster that a link publishes to, at its limit.

    Attributes:
        refused: messages that it refused in its recent readings; None if unknown.
    """

    queue: Queue
    recent: Series[Queue]
    refused: int | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that a link takes messages from."""
    circulating = circulations(view)
    for source_ in link_sources(view):
        targets = link_targets(view, source_.link)
        found = circulating.get(source_.queue.key)
        if found is not None:
            if source_.queue.key not in targets:
                yield _returns(view, found, _refusing(view, targets))
        elif source_.link is not None:
            yield from _loses(view, source_.queue, source_.link, _refusing(view, targets))


def _refusing(view: View, places: frozenset[Place]) -> RefusingTarget | None:
    """Return the first of some queues that is full and refuses publishes."""
    for place in sorted(places):
        queue = view.queue(*place)
        recent = full_readings(view, queue) if queue is not None else ()
        if queue is not None and recent:
            return RefusingTarget(queue=queue, recent=recent, refused=refused(recent))
    return None


def _returns(view: View, found: Circulation, target: RefusingTarget | None) -> Finding:
    queue, rounds = found.source.queue, found.rounds
    grows = (rounds[-1].value.messages or 0) > (rounds[0].value.messages or 0)
    link = found.source.link
    known = target is not None and link is not None and is_here(link)
    return _finding(
        link,
        queue,
        target if known else None,
        Finding(
            rule=NAME,
            severity=Severity.CRITICAL if found.moved == 0 or grows else Severity.WARNING,
            subject=Subject(
                kind="link",
                name=found.source.name,
                vhost=(link.vhost if link else None) or queue.vhost,
                node=link.node if link else queue.node,
            ),
            since=rounds[0].at.iso(),
            certainty=Certainty.CERTAIN if known else Certainty.LIKELY,
            seen_seconds=span(rounds),
            facts={
                "kind": found.source.kind,
                "loses": False,
                "returned": found.returned,
                "return_rate": found.returned / max(span(rounds), 1.0),
                "moved": found.moved,
                "lost": None,
                "drops_after": _drops_after(view, queue),
            },
            evidence=(
                Evidence(
                    key="returned",
                    value=found.returned,
                    unit=Unit.MESSAGES,
                    source=source("/api/shovels", "forwarded") + source("/api/queues", "message_stats.publish")
                    if found.by_forwarded
                    else source("/api/queues", "message_stats.redeliver"),
                ),
                Evidence(
                    key="moved",
                    value=found.moved,
                    unit=Unit.MESSAGES,
                    source=source("/api/queues", "message_stats.ack", "messages"),
                ),
            ),
            involved=involved_consumers((queue,), (found.source.path,) if found.source.path else ()),
        ),
    )


def _loses(view: View, queue: Queue, link: Link, target: RefusingTarget | None) -> Iterator[Finding]:
    """Yield a finding if the target refuses what the shovel has already taken from its source for good."""
    if target is None or not is_here(link) or target.queue.key == queue.key:
        return
    recent = last(view.history(queue), view.thresholds.interval)
    if len(recent) < 2 or delta(recent, "redeliver"):
        return
    counted = bool(queue.stats.deliver or queue.stats.deliver_no_ack)
    grown = (recent[-1].value.messages or 0) - (recent[0].value.messages or 0)
    moved = delta(recent, "ack", "deliver_no_ack") if counted else max(0, delta(recent, "publish") - grown)
    if counted:
        lost = min(target.refused or 0, moved) if _publishes_without_confirms(view, link) else 0
    else:
        room = (target.recent[-1].value.messages or 0) - (target.recent[0].value.messages or 0)
        lost = moved - max(0, room) - delta(target.recent, "ack", "deliver_no_ack")
    if moved < 2 or lost < max(2.0, _SHARE * moved):
        return
    yield _finding(
        link,
        queue,
        target,
        Finding(
            rule=NAME,
            severity=Severity.CRITICAL,
            subject=Subject(kind="link", name=link.name, vhost=link.vhost or queue.vhost, node=link.node),
            since=target.recent[0].at.iso(),
            certainty=Certainty.CERTAIN if counted else Certainty.LIKELY,
            seen_seconds=span(recent),
            facts={
                "kind": link.kind,
                "loses": True,
                "returned": 0,
                "return_rate": 0.0,
                "moved": moved,
                "lost": lost,
                "drops_after": None,
            },
            evidence=(
                Evidence(
                    key="lost",
                    value=lost,
                    unit=Unit.MESSAGES,
                    source=source("/api/queues", "message_stats.publish", "messages"),
                ),
            ),
            involved=involved_consumers((queue,), view.links(queue)),
        ),
    )


def _publishes_without_confirms(view: View, link: Link) -> bool:
    """Return whether the shovel's channel to its target is not in confirm mode; a direct one has no client name."""
    for channel in view.channels:
        if channel.confirm is False and channel.stats.publish:
            connection = view.connection(channel.connection_name)
            client = connection.client_name if connection else None
            direct = (channel.connection_name or "").startswith("<") and client is None
            if client == SHOVEL + link.name or direct:
                return True
    return False


def _drops_after(view: View, queue: Queue) -> int | None:
    """Return after how many returns the source drops or dead-letters a message; None if it never does.

    From 4.3 on, `basic.nack` with requeue does not count.
    """
    if queue.type != "quorum" or view.version is None or view.version >= (4, 3):
        return None
    limit = queue.delivery_limit if queue.delivery_limit is not None else queue.setting("delivery-limit")
    return limit if isinstance(limit, int) and limit >= 0 else None


def _finding(link: Link | None, queue: Queue, target: RefusingTarget | None, finding: Finding) -> Finding:
    """Add what both laws say about source and target."""
    full = target.queue if target else None
    facts: dict[str, Fact] = {
        "link": finding.subject.name,
        "vhost": finding.subject.vhost,
        "node": link.node if link else None,
        "dynamic": link is not None and link.type != "static",
        "listed": link is not None,
        "source": queue_facts(queue),
        "waiting": queue.messages or 0,
        "dead_letters": isinstance(queue.setting("dead-letter-exchange"), str),
        "target_queue": (link.target_queue if link else None) or (full.name if full else None),
        "target_exchange": link.target_exchange if link else None,
        "target_address": link.destination if link else None,
        "target": queue_facts(full) if full else None,
        "target_ready": full.messages_ready if full else None,
        "target_ready_bytes": full.message_bytes_ready if full else None,
        "target_limit": _number(full, "max-length"),
        "target_limit_bytes": _number(full, "max-length-bytes"),
        "target_consumers": full.consumers if full else None,
    }
    evidence = list(finding.evidence)
    if full is not None:
        fields = ("messages_ready", "message_bytes_ready", "arguments", "effective_policy_definition")
        evidence.append(
            Evidence(
                key="target",
                value=full.messages_ready,
                unit=Unit.MESSAGES,
                source=source("/api/queues", *fields) + source("/api/shovels", "dest_queue", "dest_exchange"),
            )
        )
        queues = (*finding.involved.queues, queue_ref(full))
        finding = replace(finding, involved=replace(finding.involved, queues=queues))
    return replace(finding, facts={**finding.facts, **facts}, evidence=tuple(evidence))


def _number(queue: Queue | None, name: str) -> int | None:
    value = queue.setting(name) if queue else None
    return value if isinstance(value, int) else None
