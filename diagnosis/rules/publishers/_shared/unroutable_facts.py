"""Facts and evidence that all findings about unroutable messages have."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from ackscope.findings import Evidence, Fact, Facts, Finding, Severity, Subject, Unit, source
from ackscope.topology import Exchange
from diagnosis.contract import Relation, View
from diagnosis.exchange_publishes import ENDPOINT, METRICS
from diagnosis.routes import targets
from diagnosis.rules.publishers._shared.lossy_exchanges import LossyExchange, UnroutablePublishers
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    clients,
    first_seen,
    involved_publishers,
    listed,
)

SUBSCRIPTION_TYPES = ("fanout", "topic", "headers")
"""Exchange types that need no subscriber; with the other types each routing key is meant for a queue."""

NOT_EXAMINED: Facts = {
    "exchange_type": None,
    "losers": [],
    "losing_channels": 0,
    "publishing_channels": 0,
    "only_theirs": False,
    "never_routed": False,
    "shovels": [],
    "dead_ends": [],
    "dead_end_type": None,
    "answers": False,
    "direct_replies": False,
    "alternate": None,
    "alternate_missing": False,
    "alternate_type": None,
    "alternate_empty": False,
    "gone": [],
    "client_rate": None,
    "away": [],
    "also_away": [],
    "temporary": [],
    "cluster_wide": False,
    "fed": [],
    "fed_rate": 0.0,
    "unfed": [],
    "of_clients": None,
    "work_queues": [],
    "moved_aside": [],
    "similar_exchange": None,
    "similar_differs": [],
    "clients_without_queue": [],
    "restarted_seconds": None,
    "clients_unknown": False,
}
"""Facts of the page that come from the counters and bindings of an exchange, where these are not known."""


def _queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


def _gone(_view: View, finding: Finding) -> Iterable[Hashable]:
    gone = finding.facts.get("gone")
    return ((finding.subject.vhost, name) for name in gone if isinstance(name, str)) if isinstance(gone, list) else ()


QUEUES_THAT_ARE_GONE = Relation(_queue, _gone)
"""The cause is about a queue that is gone; the consequence is that what it got until then reaches no queue."""


def exchange_subject(exchange: Exchange) -> Subject:
    """Return the exchange as the subject of a finding."""
    return Subject(kind="exchange", name=exchange.name, vhost=exchange.vhost)


def alternate_facts(view: View, exchange: Exchange, alternate: str | None) -> dict[str, Fact]:
    """Return the alternate exchange as facts; `alternate_type` is None if it does not exist or is unknown."""
    vhost = exchange.vhost
    found = next((each for each in view.exchanges if each.key == (vhost, alternate)), None)
    empty = found is not None and alternate is not None and targets(view, vhost, alternate, None) == frozenset()
    return {
        "alternate": alternate,
        "alternate_missing": alternate is not None and found is None,
        "alternate_type": found.type if found is not None else None,
        "alternate_empty": empty,
    }


def publisher_facts(found: Sequence[ActivePublisher]) -> dict[str, Fact]:
    """Return the applications of some publishers, their channels, and whether any of those uses confirms."""
    confirms = any(each.channel.confirm for each in found)
    return {"clients": clients(found), "publishers": listed(found), "confirms": confirms}


def publisher_evidence(counter: str, publishers: Sequence[ActivePublisher]) -> Iterator[Evidence]:
    """Yield what the three largest of these publishers lost recently; `counter` is one of channels."""
    for each in sorted(publishers, key=lambda each: (-each.published, each.channel.name))[:3]:
        yield Evidence(
            key="publisher",
            value=each.published,
            unit=Unit.MESSAGES,
            source=source("/api/channels", f"message_stats.{counter}"),
            facts={"publisher": each.facts(), "confirm": each.channel.confirm},
        )


def counted_evidence(counter: str, lossy: LossyExchange) -> Iterator[Evidence]:
    """Yield what the exchange lost by its own counters, or those of each channel and exchange, if these were read."""
    if lossy.counted is not None:
        own = lossy.exchange.stats.drop_unroutable is not None
        yield Evidence(
            key="exchange_lost",
            value=lossy.counted.lost,
            unit=Unit.MESSAGES,
            source=source("/api/exchanges", f"message_stats.{counter}") if own else source(ENDPOINT, METRICS[counter]),
            facts={"counted_seconds": lossy.counted.seconds, "counted_whole": lossy.counted.whole},
        )


def routed_evidence(lossy: LossyExchange) -> Iterator[Evidence]:
    """Yield what the exchange routed, unless its counter includes what it lost."""
    if not lossy.miscounted:
        yield Evidence(
            key="exchange_routed",
            value=lossy.routed,
            unit=Unit.MESSAGES,
            source=source("/api/exchanges", "message_stats.publish_out"),
        )


def unknown_exchange(view: View, rule: str, counter: str, group: UnroutablePublishers) -> Finding:
    """Return the finding for known publishers whose exchange is unknown."""
    return Finding(
        rule=rule,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=group.vhost),
        since=first_seen(group.publishers),
        facts={
            **publisher_facts(group.publishers),
            "vhost": group.vhost,
            "exchange": None,
            "amqp10": False,
            "suspects": [],
            "exchange_unknown": "several" if view.fresh("exchanges") else "not_read",
            **NOT_EXAMINED,
            "lost_rate": sum(each.rate for each in group.publishers),
        },
        evidence=tuple(publisher_evidence(counter, group.publishers)),
        involved=involved_publishers(group.publishers),
        seen_seconds=max(each.seconds for each in group.publishers),
    )
