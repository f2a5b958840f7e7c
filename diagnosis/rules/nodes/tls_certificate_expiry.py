"""tls-certificate-expiry (D14): a listener's certificate expires soon or has expired; clients that verify it fail then.

The broker reports the certificates of the polled node, but not that of its management listener.
Source: https://www.rabbitmq.com/docs/http-api-reference#health
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, source
from ackscope.topology import Certificate
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_or_cluster

NAME = "tls-certificate-expiry"
_CHECK = "certificate-expiration"
_DAY_SECONDS = 86_400.0
_CRITICAL_DAYS = 7.0


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a certificate that expires soon."""
    check = view.checks.get(_CHECK)
    if check is None:
        yield from _failed(view)
        return
    expiring: dict[str, list[Certificate]] = defaultdict(list)
    for each in check.certificates:
        if _days_left(view, each) <= view.thresholds.nodes.certificate_days:
            expiring[each.node].append(each)
    for node, certificates in sorted(expiring.items()):
        yield _finding(view, node, sorted(certificates, key=lambda each: (each.expires, each.port or 0)))
    if check.ok is False and not expiring:
        overview = view.overview
        yield _finding(view, overview.node if overview else None, [])


def _failed(view: View) -> Iterator[Inconclusive]:
    """Yield why the check itself failed; nothing if it was not requested or not answered in time."""
    if any(each.name == _CHECK and ": 500" in (each.reason or "") for each in view.requested_checks):
        yield Inconclusive(rule=NAME, reason="check_fails")


def _days_left(view: View, certificate: Certificate) -> float:
    return (certificate.expires - view.broker_wall) / _DAY_SECONDS


def _finding(view: View, node: str | None, certificates: list[Certificate]) -> Finding:
    # A list without the certificate is older than the check: the list is read every 10 min, the check every few
    # seconds.
    days = _days_left(view, certificates[0]) if certificates else None
    where = source(f"/api/health/checks/{_CHECK}")
    evidence = [
        Evidence(
            key="certificate",
            value=f"{datetime.fromtimestamp(each.expires, UTC):%Y-%m-%d %H:%M}",
            source=where,
            facts={"protocol": each.protocol, "port": each.port},
        )
        for each in certificates
    ]
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if days is not None and days <= _CRITICAL_DAYS else Severity.WARNING,
        subject=node_or_cluster(view, node),
        facts={"node": node, "days_left": days, "expected_days": view.thresholds.nodes.certificate_days},
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence) or (Evidence(key="unlisted", source=where),),
        involved=Involved(nodes=(node,) if node else ()),
    )
