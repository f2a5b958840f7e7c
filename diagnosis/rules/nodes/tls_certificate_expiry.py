"""tls-certificate-expiry (D14): a listener's certificate ends soon or has ended; then no client that checks it gets in.

The broker tells of the node that is asked only, and not of the management listener.
Source: https://www.rabbitmq.com/docs/http-api-reference#health
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.topology import Certificate
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_cluster, of_node, on
from diagnosis.words import amount

NAME = "tls-certificate-expiry"
_CHECK = "certificate-expiration"
_DAY = 86_400.0
_WEEK = 7.0
_LISTED_ONLY = "the list of its certificates does not hold the one that ends: it is read every 10 min"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a certificate that ends soon."""
    check = view.checks.get(_CHECK)
    if check is None:
        yield from _failed(view)
        return
    ending: dict[str, list[Certificate]] = defaultdict(list)
    for each in check.certificates:
        if _days(view, each) <= view.thresholds.nodes.certificate_days:
            ending[each.node].append(each)
    for node, certificates in sorted(ending.items()):
        yield _finding(view, node, sorted(certificates, key=lambda each: (each.expires, each.port or 0)))
    if check.ok is False and not ending:
        overview = view.overview
        yield _finding(view, overview.node if overview else None, [])


def _failed(view: View) -> Iterator[InconclusiveReport]:
    """What is to say where the check itself fails; nothing where it was not asked, or had no answer in time."""
    if any(each.name == _CHECK and ": 500" in (each.reason or "") for each in view.part("health")):
        yield InconclusiveReport(
            rule=NAME,
            because="the broker's own check of its certificates fails (500), as 4.0 does for a TLS listener without "
            "ssl_options.cacertfile",
            needs="set cacertfile for the listener, or look: openssl s_client -connect HOST:5671 </dev/null | "
            "openssl x509 -noout -dates",
        )


def _days(view: View, certificate: Certificate) -> float:
    return (certificate.expires - view.now.wall) / _DAY


def _finding(view: View, node: str | None, certificates: list[Certificate]) -> FindingReport:
    days = _days(view, certificates[0]) if certificates else None
    subject = of_node(node) if node else of_cluster(view)
    if days is None:
        when = "within a month"
    elif days < 0:
        when = f"since {-days:.0f} days" if days <= -1 else "since today"
    else:
        when = f"in {amount(int(days), 'day')}" if days >= 1 else "within a day"
    ended = days is not None and days < 0
    what = f"has ended {when}" if ended else f"ends {when}"
    harm = "clients that check it are refused" if ended else "then clients that check it are refused"
    evidence = tuple(
        EvidenceReport(
            what=f"certificate of {each.protocol} on port {each.port if each.port is not None else 'unknown'}",
            value=f"ends {datetime.fromtimestamp(each.expires, UTC):%Y-%m-%d %H:%M} UTC",
            expected=f"later than in {view.thresholds.nodes.certificate_days:.0f} days",
            source="/api/health/checks/certificate-expiration",
        )
        for each in certificates
    ) or (
        EvidenceReport(
            what="certificates of the node",
            value=_LISTED_ONLY,
            expected="none ends within a month",
            source="/api/health/checks/certificate-expiration/1/months",
        ),
    )
    pressing = days is not None and days <= _WEEK
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if pressing else Severity.WARNING,
        subject=subject,
        since=None,
        summary=f"A TLS certificate of {subject} {what}; {harm}",
        cause="The certificate that a listener shows was not renewed, or was and the listener still shows the old one.",
        evidence=evidence,
        next_steps=(
            f"see the listeners: rabbitmq-diagnostics {on(node)}listeners",
            "see what is shown: openssl s_client -connect HOST:5671 </dev/null | openssl x509 -noout -dates -subject",
            "put the new certificate and key in the place of the old files (ssl_options.certfile, keyfile)",
            f"have them read at once: rabbitmqctl {on(node)}eval 'ssl:clear_pem_cache().'   # no restart needed",
            "do the same on the other nodes: each is asked about its own certificates only",
        ),
        runbook=runbook(NAME),
    )
