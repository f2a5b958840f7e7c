"""monitoring-blind-spot (G10): part of the broker cannot be seen from here, and looks healthy for it.

A user with the tag monitoring but no permission on a virtual host gets 200 and an empty list of its queues. A broker
without statistics tells no rates. Nothing follows from it: whatever else is found stands for itself.
Source: https://www.rabbitmq.com/docs/management#permissions, https://www.rabbitmq.com/docs/management#disable-stats
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.words import amount

NAME = "monitoring-blind-spot"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for the cluster, with all that is hidden."""
    overview = view.overview
    hidden = _hidden(view)
    what: list[tuple[str, EvidenceReport, str]] = []
    if hidden:
        what.append(
            (
                f"{amount(hidden, 'queue')} not shown to the user that asks",
                EvidenceReport(
                    what="queues that exist and are not listed",
                    value=f"{hidden}",
                    expected="0",
                    source="/api/overview object_totals.queues, /api/queues",
                ),
                "let it look into every virtual host: rabbitmqctl set_permissions -p VHOST USER '' '' ''",
            )
        )
    if overview is not None and overview.statistics is False:
        what.append(
            (
                "statistics are turned off",
                EvidenceReport(
                    what="disable_stats", value="true", expected="false", source="/api/overview disable_stats"
                ),
                "set management_agent.disable_metrics_collector = false in rabbitmq.conf and restart the nodes",
            )
        )
    elif overview is not None and overview.rates_mode == "none":
        what.append(
            (
                "message rates are turned off",
                EvidenceReport(what="rates_mode", value="none", expected="basic", source="/api/overview rates_mode"),
                "set management.rates_mode = basic in rabbitmq.conf and restart the nodes",
            )
        )
    if what:
        yield _finding(view, what)


def _hidden(view: View) -> int:
    """Queues that several looks in a row did not show: a queue may just have come or gone, and lists may be late.

    For lack of permission they are hidden for good.
    """
    latest = view.window.latest
    if latest is None:
        return 0
    begin = latest.taken.mono - 2 * view.thresholds.early
    told = [snapshot.hidden_queues for snapshot in view.window.snapshots if snapshot.taken.mono >= begin]
    known = [number for number in told if number is not None]
    return min(known) if len(known) == len(told) > 1 else 0


def _finding(view: View, what: list[tuple[str, EvidenceReport, str]]) -> FindingReport:
    told = "; ".join(each[0] for each in what)
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"{told}: what goes wrong there is not found",
        cause="The broker is asked by a user that may not see everything, or keeps no figures to show.",
        evidence=tuple(each[1] for each in what),
        next_steps=tuple(each[2] for each in what),
        runbook=runbook(NAME),
    )
