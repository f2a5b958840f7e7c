"""listener-missing (D15): the node runs, but new clients cannot connect because nothing listens for AMQP.

`rabbitmqctl suspend_listeners` closes the management listener too (seen on 3.10, 4.0 and 4.3); open connections stay.
A drained node closes its listeners on purpose. A starting node opens its AMQP port last. A stopping node closes it
first, a few seconds before the API shows the stop.
"""

from collections.abc import Iterator, Mapping

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, Suppressed, source
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import (
    failed_readings,
    just_started,
    node_or_cluster,
    node_subject,
)
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
from diagnosis.view import is_own

NAME = "listener-missing"
_CHECK = "ready-to-serve-clients"
_LONG = 60.0
"""Seconds without the API after which a served probe is not that of a node that is being restarted."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the polled node by its own check (since 4.1) and by a refused API, and all nodes by what probes see."""
    failed = errors(view)
    if failed and _runs_and_refuses(view, failed):
        refused = [outcome for outcome in _ordered(view) if is_connection_refused(outcome)]
        evidence = [*api_evidence(view), *probe_evidence([*refused, *_served_throughout(view)])]
        yield _finding(view, polled_node(view), evidence, api_refuses=True)
        return
    if api_is_silent(view):
        return
    # If the API does not answer now, earlier answers do not prove that the node runs.
    known = not errors(view, ("overview", "nodes"))
    found = {
        name: probe_evidence(refused)
        for name, refused in _refused(view).items()
        if known and _read_after_refusal(view, name)
    }
    checked: set[str | None] = set()
    check, polled = view.checks.get(_CHECK), view.overview.node if view.overview else None
    if check is not None and check.ok is False and "listener" in (check.reason or ""):
        own = Evidence(key="ready_check", value=check.reason or "failed", source=source(f"/api/health/checks/{_CHECK}"))
        if _read_since_check_fails(view):
            checked.add(polled)
            found[polled] = [own, *found.get(polled, [])]
        else:
            yield Inconclusive(rule=NAME, reason="node_not_read", facts={"node": polled})
    for name, evidence in sorted(found.items(), key=lambda each: each[0] or ""):
        node = view.node(name)
        if node is not None and node.being_drained:
            yield Suppressed(rule=NAME, subject=node_subject(node.name), reason="draining")
        elif node is not None and just_started(view, node) and not (name in checked and _has_opened(view, node)):
            # A probe that was refused while the node was away may not have tried again.
            facts = {"uptime_seconds": node.uptime_seconds}
            yield Suppressed(rule=NAME, subject=node_subject(node.name), reason="starting", facts=facts)
        elif node is None or node.running is not False:
            yield _finding(view, name, evidence, api_refuses=False)


def _runs_and_refuses(view: View, failed: Mapping[str, str]) -> bool:
    """Return whether the only node refuses new requests, and serves open connections since before it did.

    When a node is restarted, its API is refused for a time, and readings and probes that succeed again are newer. When
    it stops, its probes show it within seconds.
    """
    good = [readings[-1].at.mono for name in failed if (readings := view.window.readings(name))]
    since = max(good, default=view.now.mono)
    # Of two readings since then, the second proves that the first was not that of a node which has just started.
    read = any(
        sum(seen.at.mono > since for seen in view.window.readings(name)) > 1 for name in VITAL if name not in failed
    )
    lasts = max(view.age(name) or 0.0 for name in failed) >= view.thresholds.nodes.listener_for
    runs = read or bool(_served_throughout(view))
    return runs and lasts and is_single_node(view) and all(is_refused(error) for error in failed.values())


def _served_throughout(view: View) -> list[ProbeOutcome]:
    """Return the probes that are served over a connection that they had before the API refused.

    One that has reconnected since its start may have done so just now. When a node is restarted, its API is read again
    some seconds after that at the latest.
    """
    ages = [age for name in VITAL if view.error(name) and (age := view.age(name)) is not None]
    long = min(ages, default=0.0) >= _LONG
    return [outcome for outcome in _ordered(view) if is_served(outcome) and (long or outcome.connects <= 1)]


def _refused(view: View) -> dict[str | None, list[ProbeOutcome]]:
    """Return, by node, the probes of its address that are refused now and were connected before."""
    single = view.nodes[0].name if len(view.nodes) == 1 else None
    found: dict[str | None, list[ProbeOutcome]] = {}
    for outcome in _ordered(view):
        # Except for handshake, a probe's node is that of its queue, not of its address.
        node = single or (outcome.node if outcome.probe == "handshake" else None)
        if node and is_connection_refused(outcome) and _connected_before(outcome):
            found.setdefault(node, []).append(outcome)
    return found


def _has_opened(view: View, node: Node) -> bool:
    """Return whether a probe is served by the only node, which proves that its port was open since it started."""
    if node.uptime_seconds is None or not is_single_node(view):
        return False
    started = view.now.wall - node.uptime_seconds - (view.age("nodes") or 0.0)
    return any(is_served(outcome) and outcome.at > started for outcome in view.outcomes)


def _read_after_refusal(view: View, name: str | None) -> bool:
    """Return whether the node was read after the refusal; a node that has just stopped was last seen running.

    Such a reading still lists the connections that our probes have lost.
    """
    own = (each for each in view.every_connection if is_own(each))
    listed = any(each.node == name for each in own)
    return not listed or any(is_served(each) and (is_single_node(view) or each.node == name) for each in view.outcomes)


def _read_since_check_fails(view: View) -> bool:
    """Return whether nodes were read after the check began to fail; before that, it may be another start."""
    began = failed_readings(view, _CHECK)
    return not began or (view.age("nodes") or 0.0) <= view.now.since(began[0].at)


def _ordered(view: View) -> list[ProbeOutcome]:
    return sorted(view.outcomes, key=lambda each: (each.probe, each.stream, each.node))


def _connected_before(outcome: ProbeOutcome) -> bool:
    tcp = outcome.steps.get("tcp")
    return outcome.connects > 0 or (tcp is not None and tcp.attempts > tcp.failures)


def _finding(view: View, name: str | None, evidence: list[Evidence], *, api_refuses: bool) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=node_or_cluster(view, name),
        facts={"node": name, "api_refuses": api_refuses},
        certainty=Certainty.CERTAIN if any(each.key == "ready_check" for each in evidence) else Certainty.LIKELY,
        evidence=tuple(evidence),
        involved=Involved(nodes=(name,) if name else ()),
    )
