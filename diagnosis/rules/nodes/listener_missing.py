"""listener-missing (D15): the node runs, and no new client gets in: nothing listens for AMQP there.

`rabbitmqctl suspend_listeners` closes the management listener too (seen on 3.10, 4.0 and 4.3); clients that are
connected stay. A node that is being drained does so on purpose; one that starts opens its AMQP port last, and one that
stops closes it first, a few seconds before the API tells of it.
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.records import ProbeOutcome
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import just_started, of_cluster, of_node, on
from diagnosis.rules.nodes.silence import (
    VITAL,
    errors,
    is_alone,
    is_refused,
    is_silent,
    is_turned_away,
    is_well,
    of_api,
    of_probes,
    silent_node,
)
from diagnosis.view import is_own
from diagnosis.words import lasting

NAME = "listener-missing"
_CHECK = "ready-to-serve-clients"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the node that is asked by its own check (4.1 on), by a refused API; each that probes know, by theirs."""
    failed = errors(view)
    if failed:
        served = [outcome for outcome in _ordered(view) if is_well(outcome)]
        # Those who are connected are served, so the node runs; who comes anew is refused. Of a node that stops its
        # probes say so within seconds.
        runs = bool(served) or any(view.fresh(name) for name in VITAL if name not in failed)
        lasts = max(view.age(name) or 0.0 for name in failed) >= view.thresholds.nodes.listener_for
        if runs and lasts and is_alone(view) and all(is_refused(error) for error in failed.values()):
            refused = [outcome for outcome in _ordered(view) if is_turned_away(outcome)]
            yield _finding(
                view, silent_node(view), [*of_api(view), *of_probes([*refused, *served])], "all listeners refuse"
            )
            return
    if is_silent(view):
        return
    # Where the API says nothing just now, what it said before does not tell that the node runs.
    known = not errors(view, ("overview", "nodes"))
    found = {name: of_probes(refused) for name, refused in _refused(view).items() if known and _is_later(view, name)}
    check, asked = view.checks.get(_CHECK), view.overview.node if view.overview else None
    if check is not None and check.ok is False and "listener" in (check.reason or ""):
        told = EvidenceReport(
            what="health check", value=check.reason or "failed", expected="ok", source=f"/api/health/checks/{_CHECK}"
        )
        found[asked] = [told, *found.get(asked, [])]
    for name, evidence in sorted(found.items(), key=lambda each: each[0] or ""):
        node = view.node(name)
        if node is not None and node.being_drained:
            because = "it is being drained: it takes no clients on purpose"
            yield SuppressedReport(rule=NAME, subject=of_node(node.name), because=because)
        elif node is not None and just_started(view, node) and not _has_opened(view, node):
            ago = "just now" if node.uptime_seconds is None else f"{lasting(node.uptime_seconds)} ago"
            because = f"it was started {ago}: the AMQP port is the last to open"
            yield SuppressedReport(rule=NAME, subject=of_node(node.name), because=because)
        elif node is None or node.running is not False:
            yield _finding(view, name, evidence, "its AMQP listener refuses")


def _refused(view: View) -> dict[str | None, list[ProbeOutcome]]:
    """Probes that are refused where they got in before, by the node that their address leads to."""
    alone = view.nodes[0].name if len(view.nodes) == 1 else None
    found: dict[str | None, list[ProbeOutcome]] = {}
    for outcome in _ordered(view):
        # Of others but the handshake the node is that of their queue, and not of their address.
        node = alone or (outcome.node if outcome.probe == "handshake" else None)
        if node and is_turned_away(outcome) and _worked(outcome):
            found.setdefault(node, []).append(outcome)
    return found


def _has_opened(view: View, node: Node) -> bool:
    """Whether somebody is served over a connection to the only node: its port was open since it started."""
    if node.uptime_seconds is None or not is_alone(view):
        return False
    started = view.now.wall - node.uptime_seconds - (view.age("nodes") or 0.0)
    return any(is_well(outcome) and outcome.at > started for outcome in view.outcomes)


def _is_later(view: View, name: str | None) -> bool:
    """Whether what was read of the node is later than the refusal: a node that has just ended was last seen running.

    Then the reading still lists the connections that our probes have lost.
    """
    own = (each for each in view.part("connections") if is_own(each))
    held = any(each.node == name for each in own)
    return not held or any(is_well(each) and (is_alone(view) or each.node == name) for each in view.outcomes)


def _ordered(view: View) -> list[ProbeOutcome]:
    return sorted(view.outcomes, key=lambda each: (each.probe, each.stream, each.node))


def _worked(outcome: ProbeOutcome) -> bool:
    tcp = outcome.steps.get("tcp")
    return outcome.connects > 0 or (tcp is not None and tcp.attempts > tcp.failures)


def _finding(view: View, name: str | None, evidence: list[EvidenceReport], what: str) -> FindingReport:
    subject = of_node(name) if name else of_cluster(view)
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=subject,
        since=None,
        summary=f"The {subject} runs and takes no new client: {what} connections",
        cause=(
            "The listener was suspended or stopped, or could not open its port when the node started. Clients that "
            "are connected stay so, and do not come back once they lose their connection."
        ),
        evidence=tuple(evidence),
        next_steps=(
            f"see what listens: rabbitmq-diagnostics {on(name)}listeners",
            f"suspended: rabbitmqctl {on(name)}resume_listeners",
            f"in maintenance: rabbitmq-upgrade {on(name)}revive",
            f"neither: see why it could not listen: rabbitmq-diagnostics {on(name)}log_tail -N 300 | grep -i listen",
            "a port that another program holds: ss -tlnp 'sport = :5672'",
        ),
        runbook=runbook(NAME),
    )
