"""connection-churn (X01): an application connects, disconnects and connects again in a loop.

Each cycle costs a TCP and perhaps a TLS handshake, a login, processes and file handles on the broker. A ratio to the
number of open connections would miss the most common case, in which only two or three are open at any time.
Source: https://www.rabbitmq.com/docs/connections#high-connection-churn
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.loops import loop_evidence, loop_facts, loop_involved

NAME = "connection-churn"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every application whose connections come and go; the cluster where none of them is ever listed."""
    limits = view.thresholds.clients
    known = [closing for closing in churn_loops(view) if closing.whole]
    for closing in known:
        if closing.lasts >= view.thresholds.early and closing.rate >= limits.connection_churn_slow:
            yield _client_finding(view, closing)
    total = churn_rate(view, "connection")
    if known or total is None:
        return
    if total.lasts >= view.thresholds.early and total.rate >= limits.connection_churn_fast:
        yield _cluster_finding(view, total)


def _is_fast(view: View, rate: float) -> bool:
    """Return whether this rate is a warning if it lasts."""
    limits = view.thresholds.clients
    connections = max((view.overview.connections if view.overview else None) or 1, 1)
    return rate >= limits.connection_churn_fast and rate / connections >= limits.connection_churn_share


def _severity(view: View, rate: float, seconds: float) -> Severity:
    late = seconds >= view.thresholds.clients.connection_churn_for
    return Severity.WARNING if _is_fast(view, rate) and late else Severity.INFO


def _certainty(view: View, rate: float, seconds: float) -> Certainty:
    early = _is_fast(view, rate) and seconds < view.thresholds.clients.connection_churn_for
    return Certainty.EARLY if early else Certainty.LIKELY


def _limit_facts(view: View, rate: float) -> dict[str, Fact]:
    limits = view.thresholds.clients
    node = next((node.name for node in view.nodes if node.running), None)
    return {
        "warning_after_seconds": limits.connection_churn_for if _is_fast(view, rate) else None,
        "warning_rate": limits.connection_churn_fast,
        "log_node": node,
    }


def _client_finding(view: View, closing: ChurnLoop) -> Finding:
    return Finding(
        rule=NAME,
        severity=_severity(view, closing.rate, closing.lasts),
        subject=closing.subject,
        since=closing.since.iso(),
        facts={**loop_facts(closing), **_limit_facts(view, closing.rate)},
        evidence=tuple(loop_evidence(closing, "connection")),
        involved=loop_involved(closing),
        certainty=_certainty(view, closing.rate, closing.lasts),
        seen_seconds=closing.lasts,
    )


def _cluster_finding(view: View, total: ChurnRate) -> Finding:
    return Finding(
        rule=NAME,
        severity=_severity(view, total.rate, total.lasts),
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=total.since.iso(),
        facts={"client": None, "cycle_rate": total.rate, "activities": [], **_limit_facts(view, total.rate)},
        evidence=(
            Evidence(
                key="loop_rate",
                value=total.rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
                facts={"what": "connection", "seen_seconds": total.lasts},
            ),
            Evidence(
                key="open",
                value=view.overview.connections if view.overview else None,
                source=source("/api/overview", "object_totals.connections"),
            ),
        ),
        certainty=_certainty(view, total.rate, total.lasts),
        seen_seconds=total.lasts,
    )
