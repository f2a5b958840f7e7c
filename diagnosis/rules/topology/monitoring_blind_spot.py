"""monitoring-blind-spot (G10): ackscope cannot see part of the broker, which therefore looks healthy.

A user with the tag monitoring but no permission on a virtual host gets 200 and an empty list of its queues. A broker
without statistics reports no rates. It explains no other finding.
Source: https://www.rabbitmq.com/docs/management#permissions, https://www.rabbitmq.com/docs/management#disable-stats
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, source
from diagnosis.churn import hidden_queues
from diagnosis.contract import RuleResult, View

NAME = "monitoring-blind-spot"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster, with all that is hidden."""
    overview = view.overview
    hidden = _hidden(view)
    statistics_off = overview is not None and overview.statistics is False
    figures = statistics_off and view.metrics is not None and "queues" in view.metrics.families
    rates_off = not statistics_off and overview is not None and overview.rates_mode == "none"
    if not (hidden or statistics_off or rates_off):
        return
    evidence = []
    if hidden:
        listed = source("/api/overview", "object_totals.queues") + source("/api/queues")
        evidence.append(Evidence(key="hidden_queues", value=hidden, source=listed))
    if statistics_off:
        evidence.append(Evidence(key="statistics", value="true", source=source("/api/overview", "disable_stats")))
    if figures:
        read = source("/metrics") + source("/metrics/detailed")
        evidence.append(Evidence(key="endpoints", value=len(view.metrics.nodes if view.metrics else ()), source=read))
    if rates_off:
        evidence.append(Evidence(key="rates_mode", value="none", source=source("/api/overview", "rates_mode")))
    yield Finding(
        rule=NAME,
        severity=Severity.INFO if figures and not hidden else Severity.WARNING,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            "hidden_queues": hidden,
            "statistics_off": statistics_off,
            "rates_off": rates_off,
            "figures_from_metrics": figures,
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
    )


def _hidden(view: View) -> int:
    """Return the queues hidden in several consecutive polls; in one poll a queue may be new, deleted or delayed.

    Queues without permission stay hidden.
    """
    latest = view.window.latest
    if latest is None:
        return 0
    begin = latest.taken.mono - 2 * view.thresholds.early
    return hidden_queues(view, [each for each in view.window.snapshots if each.taken.mono >= begin])
