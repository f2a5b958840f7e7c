"""connection-limit-reached (X05): a limit of connections or channels is used up, or nearly.

Further connections are refused: 530 "connection limit (N) is reached" for a virtual host or a user.
Source: https://www.rabbitmq.com/docs/vhosts#limits, https://www.rabbitmq.com/docs/user-limits
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Suppressed, source
from ackscope.snapshot import Connection
from ackscope.topology import Limit
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.clients._shared.logins import refused_connections

NAME = "connection-limit-reached"

CONNECTIONS, CHANNELS = "max-connections", "max-channels"
_NODE_CHECK = "below-node-connection-limit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare every limit with its use; nodes have a health check for theirs (since 4.1)."""
    for limit in view.limits_set:
        if limit.name not in {CONNECTIONS, CHANNELS} or limit.value < 0:
            continue
        used = sum(_holders(view, limit).values())
        refused = refused_connections(view)
        if limit.value == 0 and not (refused and refused.count):
            yield Suppressed(rule=NAME, subject=_subject(limit), reason="closed_on_purpose")
        elif used >= view.thresholds.clients.limit_share * limit.value:
            yield _finding(view, limit, used)
    check = view.checks.get(_NODE_CHECK)
    if check is not None and check.ok is False:
        yield _node_finding(view, check.reason or "")


def _counted(view: View, limit: Limit) -> list[Connection]:
    """Connections that count against the limit, including those of the probes."""
    by_vhost = limit.scope == "vhost"
    return [each for each in view.part("connections") if limit.subject == (each.vhost if by_vhost else each.user)]


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


def _finding(view: View, limit: Limit, used: int) -> Finding:
    full = used >= limit.value
    refused = refused_connections(view)
    # A connection pool of exactly the size of the limit is harmless.
    harms = full and (refused is None or refused.count > 0)
    holders = sorted(_holders(view, limit).items(), key=lambda item: (-item[1], item[0]))
    evidence = [
        Evidence(
            key="used",
            value=used,
            source=source(f"/api/{limit.scope}-limits", "value") + source("/api/connections"),
        )
    ]
    if holders:
        evidence.append(Evidence(key="holders", source=source("/api/connections", "client_properties.connection_name")))
    if full and refused is not None and refused.count > 0:
        evidence.append(
            Evidence(
                key="refused",
                value=refused.count,
                source=source("/api/auth/attempts", "auth_attempts_succeeded")
                + source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
                facts={"refused_seconds": refused.seconds},
            )
        )
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if harms else Severity.WARNING,
        subject=_subject(limit),
        facts={
            "scope": limit.scope,
            "of": limit.subject,
            "limit_name": limit.name,
            "limit": limit.value,
            "used": used,
            "full": full,
            "warning_share": view.thresholds.clients.limit_share,
            "holders": [{"client": name, "used": number} for name, number in holders],
            "raised_limits": {limit.name: max(limit.value * 2, 10)},
        },
        evidence=tuple(evidence),
        involved=involved_connections(_counted(view, limit)),
        certainty=Certainty.CERTAIN,
    )


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
