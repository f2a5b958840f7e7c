"""pub-no-confirms (A04): channels publish without confirms, so a lost message would go unnoticed.

Nothing is wrong until a node dies or a channel is closed; then the messages in flight are lost, and the publisher does
not know which. Source: https://www.rabbitmq.com/docs/confirms, https://www.rabbitmq.com/docs/publishers#data-safety
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.second_source import NativeTotals
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED
from diagnosis.rules.publishers._shared.native_publishers import (
    SETTLED_WHEN_SENT,
    is_native,
    native_publishers,
    without_links,
)
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    by_vhost,
    clients,
    first_seen,
    increase,
    involved_publishers,
    listed,
    publishers,
)
from diagnosis.series import span
from diagnosis.unattributed import (
    TOTALS,
    gained,
    names,
    suspect_evidence,
    suspect_facts,
    suspects,
    totals,
    with_suspects,
)
from diagnosis.window import Series

NAME = "pub-no-confirms"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host that has durable queues and such publishers."""
    by_total = _by_total(view)
    if by_total is None:
        yield from without_links(view, NAME)
    # The mode of a channel shows about 5 s after it was opened, so a single reading proves nothing.
    min_published = view.thresholds.publishers.no_confirms_least
    found = [
        each
        for each in (*publishers(view), *(link.as_active() for link in native_publishers(view)))
        if each.channel.confirm is False
        and each.channel.transactional is False
        and (each.channel.stats.publish or 0) >= min_published
        and each.published > increase(view, each.history, DROPPED)
        and each.seconds >= min(view.thresholds.early, view.thresholds.interval)
    ]
    if not found and not by_total:
        return
    # If nothing has to survive a restart, a telemetry publisher needs no confirms.
    durable = {queue.vhost for queue in view.all_queues if queue.durable and not queue.exclusive}
    nodes_down = sorted(node.name for node in view.nodes if node.running is False and not node.being_drained)
    groups = by_vhost(found)
    for vhost in sorted({*groups, *([by_total.vhost] if by_total else [])}):
        if vhost in durable:
            yield _finding(
                vhost, groups.get(vhost, []), nodes_down, by_total if by_total and by_total.vhost == vhost else None
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unconfirmed:
    """Messages that AMQP 1.0 clients of a virtual host settled when they sent them; the broker tells no links.

    Attributes:
        published: how many, over `series`.
    """

    vhost: str
    published: int
    series: Series[NativeTotals]
    suspects: tuple[Connection, ...]

    @property
    def seconds(self) -> float:
        """How long they were counted."""
        return span(self.series)


def _by_total(view: View) -> _Unconfirmed | Literal[False] | None:
    """Return what AMQP 1.0 clients published without waiting for an outcome, by the totals of all of them.

    False if it is known that they did not; None if that or their virtual host is not known, or their links are.
    """
    if view.fresh("sessions") and view.sessions:
        return None
    series, found = totals(view), suspects(view, None)
    published = gained(series, _unawaited)
    vhosts = {each.vhost or "/" for each in found}
    if published is None or (published and len(vhosts) != 1):
        return None
    if published < view.thresholds.publishers.no_confirms_least or span(series) < view.thresholds.interval:
        return False if not published and span(series) >= view.thresholds.early else None
    return _Unconfirmed(vhost=vhosts.pop(), published=published, series=series, suspects=found)


def _unawaited(value: NativeTotals) -> int | None:
    return None if value.received is None or value.awaited is None else value.received - value.awaited


def _finding(vhost: str, group: list[ActivePublisher], nodes_down: list[str], native: _Unconfirmed | None) -> Finding:
    own = native.suspects if native else ()
    involved = replace(involved_publishers(group), nodes=tuple(nodes_down))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if nodes_down else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=first_seen(group) if group else native.series[0].at.iso() if native else None,
        facts={
            "channels": len(group),
            "clients": [*clients(group), *names(own)],
            "settled_when_sent": native.published if native else 0,
            "settled_rate": native.published / native.seconds if native else 0.0,
            "suspects": suspect_facts(own),
            "publishers": listed(group),
            "publish_rate": sum(each.rate for each in group),
            "nodes_down": nodes_down,
            "amqp10": [each.client for each in group if is_native(each.connection)],
        },
        evidence=(
            *_evidence(group),
            *(
                (
                    Evidence(
                        key="settled_when_sent",
                        value=native.published,
                        unit=Unit.MESSAGES,
                        source=source(
                            TOTALS,
                            'rabbitmq_global_messages_received_total{protocol="amqp10"}',
                            'rabbitmq_global_messages_received_confirm_total{protocol="amqp10"}',
                        ),
                        facts={"over_seconds": native.seconds},
                    ),
                )
                if native
                else ()
            ),
            *suspect_evidence(own),
        ),
        involved=with_suspects(involved, own),
        certainty=Certainty.CERTAIN,
        seen_seconds=max([each.seconds for each in group] + ([native.seconds] if native else [])),
    )


def _evidence(group: list[ActivePublisher]) -> Iterator[Evidence]:
    return (
        Evidence(
            key="publisher",
            value=each.published,
            unit=Unit.MESSAGES,
            source=SETTLED_WHEN_SENT
            if is_native(each.connection)
            else source("/api/channels", "confirm", "transactional", "message_stats.publish"),
            facts={"publisher": each.facts()},
        )
        for each in sorted(group, key=lambda each: (-each.published, each.channel.name))[:3]
    )
