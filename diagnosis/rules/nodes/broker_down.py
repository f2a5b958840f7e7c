"""broker-down (D18): nothing listens on the management port, and no AMQP port serves a probe: the broker does not run.

A node that is down while others run is node-down, which they report. Here nobody is left to report it: the only node
ended, or all of them. Without probes only the management API is asked, which is also refused where its plugin is off.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_or_cluster
from diagnosis.rules.nodes._shared.unresponsive import (
    VITAL,
    api_evidence,
    api_is_silent,
    errors,
    is_connection_refused,
    is_refused,
    is_served,
    is_single_node,
    polled_node,
    probe_evidence,
)

NAME = "broker-down"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding if every request and every probe is refused since the broker was last read."""
    ages = [age for name in VITAL if (age := view.age(name)) is not None]
    if not api_is_silent(view) or not ages or not all(map(is_refused, errors(view).values())):
        return
    if min(ages) >= view.thresholds.early and not any(map(is_served, view.outcomes)):
        yield _finding(view, min(ages))


def _finding(view: View, seconds: float) -> Finding:
    refused = [outcome for outcome in view.outcomes if is_connection_refused(outcome)]
    node = polled_node(view) if is_single_node(view) else None
    limit = view.thresholds.nodes.broker_down_for
    worst = Severity.CRITICAL if refused else Severity.WARNING
    readings = view.window.readings("overview")
    return Finding(
        rule=NAME,
        severity=worst if seconds >= limit else Severity.INFO,
        subject=node_or_cluster(view, node),
        since=readings[-1].at.iso() if readings else None,
        facts={
            "node": node,
            "amqp_refuses": bool(refused),
            "probed": bool(view.outcomes),
            "reads_only_metrics": view.reads_only_metrics,
            "plugin": "rabbitmq_prometheus" if view.reads_only_metrics else "rabbitmq_management",
            "uptime_seconds": known.uptime_seconds if (known := view.node(node)) else None,
            "warning_after_seconds": limit,
        },
        certainty=Certainty.EARLY if seconds < limit else Certainty.CERTAIN if refused else Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=(*api_evidence(view), *_probes(view)),
        involved=Involved(nodes=(node,) if node else ()),
    )


def _probes(view: View) -> list[Evidence]:
    ordered = sorted(view.outcomes, key=lambda each: (not is_connection_refused(each), each.probe, each.stream))
    return probe_evidence(ordered[:2])
