"""hung-peer (E07): a node of the cluster is frozen, and its healthy peers hang in requests that involve all nodes.

Such requests (/api/nodes, /api/overview, /api/queues) get no answer until net_ticktime has passed, while health checks
of the polled node answer at once. An overloaded management API is slow for long lists, but not for a list of three
nodes. Only a handshake with each node shows which one it is: TCP is accepted (by the kernel), AMQP never answers.
Source: gen_server calls without a timeout in rabbitmq-server; seen on 4.0 and 4.3.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Inconclusive, Involved, Severity, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import accepts_but_hangs
from diagnosis.rules.nodes._shared.node_history import node_or_cluster
from diagnosis.rules.nodes._shared.unresponsive import is_unanswered_reading

NAME = "hung-peer"

_APART_SECONDS = 2.0
"""Readings that are further apart are not from the same poll."""

ASKS_ALL = ("overview", "nodes", "queues")
"""Families whose requests involve every node."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the node whose handshake hangs, or one for the cluster where it is not known."""
    frozen = sorted(
        {outcome.node for outcome in view.outcomes_of("handshake") if outcome.node and accepts_but_hangs(outcome)}
    )
    if len(_silent(view)) < len(ASKS_ALL) or not _health_checks_answer(view):
        return
    if len(frozen) == 1:
        yield _finding(view, frozen[0])
        return
    yield _finding(view, None)
    yield Inconclusive(rule=NAME, reason="node_unknown")


def _silent(view: View) -> list[str]:
    """Families that involve all nodes and have had no answer for long enough."""
    found = []
    for family in ASKS_ALL:
        age = view.age(family)
        if is_unanswered_reading(view.error(family)) and (age is None or age >= view.thresholds.cluster.hung_for):
            found.append(family)
    return found


def _health_checks_answer(view: View) -> bool:
    """Whether health checks were answered after the other requests began to hang."""
    age = view.age("health")
    if age is None or view.error("health") is not None or not view.checks:
        return False
    return all(known is None or age + _APART_SECONDS <= known for known in map(view.age, ASKS_ALL))


def _finding(view: View, name: str | None) -> Finding:
    silent = max((view.age(family) or 0.0 for family in ASKS_ALL), default=0.0)
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=node_or_cluster(view, name),
        facts={"node": name, "silent_seconds": silent or None},
        seen_seconds=silent or None,
        evidence=tuple(_evidence(view, name)),
        involved=Involved(nodes=(name,) if name else ()),
    )


def _evidence(view: View, name: str | None) -> Iterator[Evidence]:
    for family in ASKS_ALL:
        path = f"/api/{family}"
        facts = {"path": path, "age_seconds": view.age(family)}
        yield Evidence(key="no_answer", source=source(path), facts=facts)
    checks = sorted(check.name for check in view.checks.values())
    yield Evidence(
        key="health_checks", value=len(checks), source=source("/api/health/checks"), facts={"checks": checks}
    )
    for outcome in view.outcomes_of("handshake"):
        if outcome.node and (outcome.node == name or (name is None and accepts_but_hangs(outcome))):
            opening = outcome.steps.get("open")
            yield Evidence(
                key="handshake",
                value=opening.reason if opening else None,
                source=source("probe handshake", "open"),
                facts={"probed_node": outcome.node},
            )
