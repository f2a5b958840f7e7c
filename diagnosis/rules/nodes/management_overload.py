"""management-overload (D12): the management API answers late or not at all, while the broker itself works.

It computes its statistics for each request: many objects, or monitoring that polls too often, make answers slow.
Source: https://www.rabbitmq.com/docs/management#statistics
"""

from collections.abc import Iterator, Mapping

from ackscope.findings import Evidence, Finding, Severity, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import cluster_subject
from diagnosis.rules.nodes._shared.unresponsive import (
    api_evidence,
    api_is_silent,
    errors,
    is_served,
    is_unanswered,
    is_unanswered_reading,
)

NAME = "management-overload"
_FAMILIES = ("overview", "nodes", "queues", "channels", "consumers", "connections")
_PROBE_NOTICES_SECONDS = 15.0
"""Seconds of silence after which a probe of a hung node has failed."""
_ONE_PAGE = 500
"""Number of queues above which their list is read page by page, which is slow even on a healthy broker."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the API by its response times and by missing answers."""
    failed = {name: error for name, error in errors(view, _FAMILIES).items() if is_unanswered_reading(error)}
    slow = {} if failed else _slow(view)
    if not failed and not slow:
        return
    if failed and not _only_api_hangs(view, failed):
        return
    yield _finding(view, failed, slow)


def _only_api_hangs(view: View, failed: Mapping[str, str]) -> bool:
    """Return whether only the API hangs, and neither this node nor another node of its cluster."""
    if api_is_silent(view):
        # If nothing can be read, only a served client proves that the node works.
        long = (view.age("health") or 0.0) >= _PROBE_NOTICES_SECONDS
        return long and any(map(is_served, view.outcomes)) and not any(map(is_unanswered, view.outcomes))
    latest = view.window.latest
    several = latest is not None and len(latest.nodes.value or ()) > 1
    # A hung peer delays requests that involve all nodes: overview and nodes. Health checks answer at once.
    return not (several and "nodes" in failed)


def _slow(view: View) -> dict[str, list[float]]:
    """Return the seconds of the latest readings of each family whose last two took too long, oldest first."""
    limits, found = view.thresholds.nodes, {}
    for name in _FAMILIES:
        if name == "queues" and len(view.all_queues) > _ONE_PAGE:
            continue
        seconds: dict[float, float] = {}
        for snapshot in view.window.snapshots:
            part = snapshot.parts[name]
            if part.at is not None and part.seconds is not None:
                seconds[part.at.mono] = part.seconds
        recent = list(seconds.values())[-limits.overload_readings :]
        if recent and view.fresh(name) and min(recent[-2:]) > limits.overload_seconds:
            found[name] = recent
    return found


def _finding(view: View, failed: Mapping[str, str], slow: Mapping[str, list[float]]) -> Finding:
    limits = view.thresholds.nodes
    enough = any(
        min(each) > limits.overload_seconds and len(each) >= limits.overload_readings for each in slow.values()
    )
    silent = max((age for name in failed if (age := view.age(name)) is not None), default=0.0)
    lasting = enough or silent >= limits.overload_readings * limits.overload_seconds
    since = view.window.readings(min(failed)) if failed else ()
    overview = view.overview
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=cluster_subject(view),
        since=since[-1].at.iso() if since else None,
        facts={
            "failed": sorted(failed),
            "slow": sorted(slow),
            "slowest_seconds": max((max(each) for each in slow.values()), default=None),
            "limit_seconds": limits.overload_seconds,
            "served_streams": sum(map(is_served, view.outcomes)),
            "queues": overview.queues if overview else None,
            "connections": overview.connections if overview else None,
            "channels": overview.channels if overview else None,
        },
        seen_seconds=silent if failed else None,
        evidence=tuple(_evidence(view, failed, slow)),
    )


def _evidence(view: View, failed: Mapping[str, str], slow: Mapping[str, list[float]]) -> Iterator[Evidence]:
    yield from api_evidence(view, sorted(failed))[:3]
    for family, seconds in sorted(slow.items()):
        yield Evidence(
            key="slow_reading",
            value=seconds[-1],
            unit=Unit.SECONDS,
            source=source(f"/api/{family}"),
            facts={"family": family, "readings_seconds": seconds},
        )
    checks = view.age("health")
    if checks is not None and not view.error("health"):
        yield Evidence(key="health_checks", value=checks, unit=Unit.SECONDS, source=source("/api/health/checks"))
    overview = view.overview
    if overview is not None and any(each is not None for each in (overview.queues, overview.connections)):
        names = ("queues", "connections", "channels")
        yield Evidence(key="objects", source=source("/api/overview", *(f"object_totals.{name}" for name in names)))
    backlog = sum(node.backlog or 0 for node in view.nodes)
    if backlog:
        yield Evidence(key="statistics_backlog", value=backlog, source=source("/api/nodes", "metrics_gc_queue_length"))
    if any(map(is_served, view.outcomes)):
        yield Evidence(key="probes", source=source("probes"))
