"""connection-limit-reached (X05): a limit of connections or channels is used up, or nearly.

Further connections are refused: 530 "connection limit (N) is reached" for a virtual host or a user.

Where the broker lists no clients, the totals of the cluster decide: no virtual host or user has more than all have, and
the only virtual host has all connections.
Source: https://www.rabbitmq.com/docs/vhosts#limits, https://www.rabbitmq.com/docs/user-limits
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import (
    Certainty,
    Evidence,
    Fact,
    Finding,
    Inconclusive,
    Severity,
    Subject,
    Suppressed,
    Unit,
    source,
)
from ackscope.snapshot import Connection
from ackscope.topology import Limit
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.preconditions import unread
from diagnosis.relations import ANYWHERE
from diagnosis.rules.clients._shared.connections import has_channels, involved_connections
from diagnosis.rules.clients._shared.limits import raised_limits
from diagnosis.rules.clients._shared.logins import refused_connections
from diagnosis.rules.clients._shared.loops import subject_key
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.series import stretch

NAME = "connection-limit-reached"

CONNECTIONS, CHANNELS = "max-connections", "max-channels"
_NODE_CHECK = "below-node-connection-limit"


_NO_CHANNEL = 0.3
"""Channels per connection that count as none: a refused channel is not counted as opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """The use of one limit.

    Attributes:
        used: connections or channels, whichever the limit counts.
        partial: whether some counts are missing, so that it is a minimum.
        loops: clients that reconnect and never get a channel.
        unlisted: such connections that are too brief to be listed; None if there are none.
    """

    limit: Limit
    used: int
    partial: bool
    loops: tuple[ChurnLoop, ...] = ()
    unlisted: ChurnRate | None = None

    @property
    def full(self) -> bool:
        """Whether the next connection or channel is refused."""
        return self.used >= self.limit.value


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare every limit with its use; nodes have a health check for theirs (since 4.1)."""
    lacking = tuple(unread(NAME, view, ("connections",)))
    if lacking and not (view.lists_no_clients and all(_is_far(view, limit) for limit in _limits(view))):
        yield from lacking
    if lacking and not view.lists_no_clients:
        return
    for use in per_view(view, _uses):
        limit = use.limit
        refused = refused_connections(view) if limit.name == CONNECTIONS else None
        nobody = not (refused and refused.count) and not use.loops and use.unlisted is None
        if limit.value == 0 and nobody:
            yield Suppressed(rule=NAME, subject=_subject(limit), reason="closed_on_purpose")
        elif use.used >= view.thresholds.clients.limit_share * limit.value:
            yield _finding(view, use)
        elif use.partial:
            facts: dict[str, Fact] = {"scope": limit.scope, "of": limit.subject, "limit_name": limit.name}
            yield Inconclusive(rule=NAME, reason="counts_missing", facts=facts)
    check = view.checks.get(_NODE_CHECK)
    if check is not None and check.ok is False:
        yield _node_finding(view, check.reason or "")


def _limits(view: View) -> list[Limit]:
    return [each for each in view.limits_set if each.name in {CONNECTIONS, CHANNELS} and each.value >= 0]


def _total(view: View, limit: Limit) -> int | None:
    """Return how many connections or channels the whole cluster has; None if unknown."""
    overview = view.overview
    if overview is None:
        return None
    return overview.channels if limit.name == CHANNELS else overview.connections


def _is_far(view: View, limit: Limit) -> bool:
    """Return whether all clients together have too few connections or channels for a limit, or all count against it."""
    total = _total(view, limit)
    return total is not None and (total < view.thresholds.clients.limit_share * limit.value or _has_all(view, limit))


def _has_all(view: View, limit: Limit) -> bool:
    """Return whether a limit is that of the only virtual host, as far as its queues tell."""
    only = limit.scope == "vhost" and {each.name for each in view.vhosts} == {limit.subject}
    latest = view.window.latest
    return only and latest is not None and latest.hidden_queues == 0 and _total(view, limit) is not None


def _uses(view: View) -> tuple[LimitUse, ...]:
    limits = _limits(view)
    if view.lists_no_clients:
        limits = [each for each in limits if _has_all(view, each)]
    uses = [_use(view, limit) for limit in limits]
    full = [use.limit for use in uses if use.limit.name == CHANNELS and use.full]
    return tuple(_with_clients(view, use, only=len(full) == 1) if use.limit in full else use for use in uses)


def _use(view: View, limit: Limit) -> LimitUse:
    if view.lists_no_clients:
        return LimitUse(limit=limit, used=_total(view, limit) or 0, partial=False)
    partial = limit.name == CHANNELS and any(each.channels is None for each in _counted(view, limit))
    return LimitUse(limit=limit, used=sum(_holders(view, limit).values()), partial=partial)


def _with_clients(view: View, use: LimitUse, *, only: bool) -> LimitUse:
    """Return the use of a limit of channels with the clients that connect again and again and never get a channel."""
    cycles = cluster_cycles(view)
    if cycles is None or cycles.channels is None or cycles.channels > _NO_CHANNEL:
        return use
    early, reconnecting = view.thresholds.early, [loop for loop in churn_loops(view) if loop.whole]
    loops = tuple(loop for loop in reconnecting if loop.lasts >= early and loop.connection.user == use.limit.subject)
    unlisted = churn_rate(view, "connection") if only and not reconnecting else None
    if unlisted is not None and unlisted.lasts < early:
        unlisted = None
    return LimitUse(limit=use.limit, used=use.used, partial=use.partial, loops=loops, unlisted=unlisted)


def _counted(view: View, limit: Limit) -> list[Connection]:
    """Connections that count against the limit, including those of the probes."""
    by_vhost = limit.scope == "vhost"
    return [each for each in view.every_connection if limit.subject == (each.vhost if by_vhost else each.user)]


def _without_channel(view: View, limit: Limit) -> list[Connection]:
    """Connections that count against the limit and do nothing: they have no channel."""
    return [each for each in _counted(view, limit) if has_channels(each) and each.channels == 0]


def _holders(view: View, limit: Limit) -> Counter[str]:
    """Connections or channels, whichever the limit counts, by client."""
    found: Counter[str] = Counter()
    for each in _counted(view, limit):
        found[client_name(each) or each.name] += (each.channels or 0) if limit.name == CHANNELS else 1
    return found


def _subject(limit: Limit) -> Subject:
    if limit.scope == "vhost":
        return Subject(kind="vhost", name=limit.subject, vhost=limit.subject)
    return Subject(kind="connection", name=f"user {limit.subject}")


def _finding(view: View, use: LimitUse) -> Finding:
    limit = use.limit
    # A pool of exactly the size of the limit is harmless.
    refused = refused_connections(view)
    if limit.name == CONNECTIONS:
        harms = use.full and (refused is None or refused.count > 0)
    else:
        harms = bool(use.loops) or use.unlisted is not None
    holders = sorted(_holders(view, limit).items(), key=lambda item: (-item[1], item[0]))
    idle = _without_channel(view, limit) if limit.name == CONNECTIONS else []
    # 0 admits nobody, and is removed instead of raised.
    other = max(limit.value * 2, 10) if limit.value else -1
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if harms else Severity.WARNING,
        subject=_subject(limit),
        since=_set_since(view, limit),
        facts={
            "scope": limit.scope,
            "of": limit.subject,
            "limit_name": limit.name,
            "limit": limit.value,
            "used": use.used,
            "full": use.full,
            "warning_share": view.thresholds.clients.limit_share,
            "holders": [{"client": name, "used": number} for name, number in holders],
            "without_channel": len(idle),
            "without_channel_clients": sorted({client_name(each) or each.name for each in idle})[:MAX_NAMED],
            "clients": [{"client": loop.client, "cycle_rate": loop.rate} for loop in use.loops],
            "raised_limits": raised_limits(view, limit, other),
        },
        evidence=tuple(_evidence(view, use, has_holders=bool(holders))),
        involved=involved_connections([*_counted(view, limit), *(loop.connection for loop in use.loops)]),
        certainty=Certainty.CERTAIN,
    )


def _set_since(view: View, limit: Limit) -> str | None:
    """Return the first reading with a limit of this value; None if it has been set for longer than is known."""
    readings = view.window.readings("limits")
    alike = stretch(readings, lambda older, newer: limit in older.value and limit in newer.value)
    return alike[0].at.iso() if 0 < len(alike) < len(readings) else None


def _evidence(view: View, use: LimitUse, *, has_holders: bool) -> Iterator[Evidence]:
    yield Evidence(
        key="used",
        value=use.used,
        source=source(f"/api/{use.limit.scope}-limits", "value")
        + (source("/metrics", "rabbitmq_connections") if view.lists_no_clients else source("/api/connections")),
    )
    if has_holders:
        yield Evidence(key="holders", source=source("/api/connections", "client_properties.connection_name"))
    refused = refused_connections(view)
    if use.limit.name == CONNECTIONS and use.full and refused is not None and refused.count > 0:
        yield Evidence(
            key="refused",
            value=refused.count,
            source=source("/api/auth/attempts", "auth_attempts_succeeded")
            + source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
            facts={"refused_seconds": refused.seconds},
        )
    rate = use.unlisted.rate if use.unlisted else sum(loop.rate for loop in use.loops)
    if rate:
        lasts = use.unlisted.lasts if use.unlisted else max(loop.lasts for loop in use.loops)
        yield Evidence(
            key="no_channel",
            value=rate,
            unit=Unit.PER_SECOND,
            source=source("/api/overview", "churn_rates.connection_created", "churn_rates.channel_created"),
            facts={"refused_seconds": lasts},
        )


def _refuses_connections(view: View, finding: Finding) -> Iterable[Hashable]:
    full = finding.facts.get("limit_name") == CONNECTIONS and finding.facts.get("full")
    return ANYWHERE.of_cause(view, finding) if full or finding.facts["scope"] == "node" else ()


REFUSES = Relation(_refuses_connections, ANYWHERE.of_other)
"""The limit refuses connections after their login; in which virtual host others were refused is unknown."""


def _shut_out(_view: View, finding: Finding) -> Iterable[Hashable]:
    refuses = finding.facts.get("limit_name") == CONNECTIONS and finding.severity is Severity.CRITICAL
    return (finding.subject.vhost,) if refuses and finding.facts["scope"] == "vhost" else ()


def _lost_its_consumer(_view: View, finding: Finding) -> Iterable[Hashable]:
    lost = finding.facts.get("had_consumer") or finding.facts.get("was_consumed")
    return (finding.subject.vhost,) if lost and finding.subject.kind == "queue" else ()


SHUT_OUT = Relation(_shut_out, _lost_its_consumer)
"""The cause is a virtual host that refuses connections; the consequence is about a queue whose consumer left."""


def _loops_of(view: View, finding: Finding) -> Iterable[Hashable]:
    for use in per_view(view, _uses):
        if _subject(use.limit) == finding.subject:
            yield from (subject_key(loop.subject) for loop in use.loops)
            if use.unlisted is not None:
                yield subject_key(Subject(kind="cluster", name=view.window.cluster))


def _subject_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    return (subject_key(finding.subject),)


LOOPS_REFUSED_HERE = Relation(_loops_of, _subject_of)
"""The cause is a limit of channels; the consequence is about clients that reconnect because they get no channel."""


def _node_finding(view: View, reason: str) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={"scope": "node", "reason": reason},
        evidence=(
            Evidence(key="health_check", value=reason or "failed", source=source(f"/api/health/checks/{_NODE_CHECK}")),
        ),
        certainty=Certainty.CERTAIN,
    )
