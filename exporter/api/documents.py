"""The documents of the HTTP API, made from memory. Pure: plain values in, JSON-ready values out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import orjson

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, FindingKey
from ackscope.reports import EndedReport, FindingReport, flat_reports, runbook
from ackscope.snapshot import FAMILIES, Part, Snapshot
from ackscope.topology import Bindings
from ackscope.triage import Triage
from diagnosis.finding_changes import EndedFinding
from diagnosis.text import MANAGEMENT, Cluster, render, render_inconclusive, render_suppressed
from exporter.broker.families import FAST
from exporter.exposition.live.outcomes import current_outcomes
from exporter.exposition.live.process import SupervisedProcess
from exporter.probes_host.latency_breakdown import confirm_layers
from exporter.runtime.state import ClusterState
from exporter.triage.store import TriageStore

Document = dict[str, Any]


def findings(
    states: Mapping[str, ClusterState],
    now: Instant,
    management: Callable[[str], str] = lambda _: MANAGEMENT,
    triage: TriageStore | None = None,
) -> Document:
    """Return the findings of each cluster; `management` gives the URL of a cluster's management API.

    `age_seconds` is the age of the oldest reading among the `FAST` families. `overdue_seconds` is how far the most
    delayed of them is behind its planned interval: queues of a large or idle broker are read less often by design.
    """
    return {
        "now": now.iso(),
        "clusters": [
            cluster_findings(
                name,
                state.snapshot,
                state.verdict,
                now,
                management(name),
                triage.of(name) if triage else {},
                state.ended,
            )
            for name, state in states.items()
        ],
        "triage_writable": triage is not None and triage.writable,
    }


def cluster_findings(
    name: str,
    snapshot: Snapshot | None,
    result: DiagnosisResult | None,
    now: Instant,
    management: str = MANAGEMENT,
    triage: Mapping[FindingKey, Triage] = MappingProxyType({}),
    ended: Sequence[EndedFinding] = (),
) -> Document:
    """Return the entry of one cluster. Before the first diagnosis all its lists are empty, including `checked`."""
    cluster = Cluster.of(snapshot, management)
    # Only families that are read in every round: the others are older by design.
    parts = {} if snapshot is None else snapshot.parts
    ages = {name: age for name in FAST if name in parts and (age := parts[name].age(now)) is not None}
    overdue = (max(0.0, age - (parts[name].every or 0.0)) for name, age in ages.items())
    return {
        "cluster": name,
        "broker": snapshot.broker if snapshot else None,
        "age_seconds": max(ages.values(), default=None),
        "overdue_seconds": max(overdue, default=None),
        "findings": [
            with_triage(render(each, cluster), triage, now.wall) for each in (result.findings if result else ())
        ],
        "cannot_tell": [render_inconclusive(each) for each in (result.inconclusive if result else ())],
        "set_aside": [render_suppressed(each) for each in (result.suppressed if result else ())],
        "checked": list(result.checked) if result else [],
        "ended": [_ended(each, now) for each in ended],
    }


def _ended(each: EndedFinding, now: Instant) -> EndedReport:
    finding = each.finding
    return EndedReport(
        rule=finding.rule,
        severity=finding.severity,
        subject=finding.subject,
        since=finding.since,
        ended_at=each.at.iso(),
        ended_seconds=now.since(each.at),
        runbook=runbook(finding.rule),
    )


def with_triage(report: FindingReport, triage: Mapping[FindingKey, Triage], wall: float) -> FindingReport:
    """A finding and its consequences with what people say about them at `wall`, seconds since 1970."""
    if not triage:
        return report
    about = triage.get(report.key)
    if about is not None:
        worst = min((it.severity for it in flat_reports((report,))), key=lambda it: it.urgency)
        about = replace(about, muted=about.mutes(worst, wall))
    return replace(
        report, triage=about, consequences=tuple(with_triage(it, triage, wall) for it in report.consequences)
    )


def probes(states: Mapping[str, ClusterState], status: SupervisedProcess | None, now: Instant) -> Document:
    """Return the probe results of each cluster. All clusters share one probe process.

    `probes` of a cluster are `ProbeOutcome`s, `layers` are `Layer`s (name, seconds, node, because): the latency
    breakdown of confirms, from recent summaries. Durations are in seconds; unknown values are null.
    """
    process = {
        "up": status.up if status else False,
        "restarts": status.restarts if status else 0,
        "age_seconds": status.age_seconds if status else None,
    }
    return {
        "now": now.iso(),
        "clusters": [
            {
                "cluster": name,
                "process": process,
                "probes": state.latest_outcomes(now),
                "layers": confirm_layers(current_outcomes(state, now)),
            }
            for name, state in states.items()
        ],
    }


def snapshots(
    states: Mapping[str, ClusterState], now: Instant, families: Collection[str] = tuple(FAMILIES)
) -> Document:
    """Latest snapshot of each cluster, with the age of each part; `families` limits the parts."""
    latest = [state.snapshot for state in states.values() if state.snapshot is not None]
    return {"now": now.iso(), "clusters": [_snapshot(snapshot, now, families) for snapshot in latest]}


def _snapshot(snapshot: Snapshot, now: Instant, families: Collection[str]) -> Document:
    parts = snapshot.parts
    shown = [field.name for field in fields(snapshot) if field.name not in parts or field.name in families]
    document = {name: getattr(snapshot, name) for name in shown}
    if not {"channels", "consumers"}.intersection(families):
        # Where the broker lists none of these, they are long.
        del document["processes"]
    if "bindings" in document:
        document["bindings"] = _bindings(snapshot.bindings)
    return {**document, "ages": {family: part.age(now) for family, part in parts.items() if family in families}}


def _bindings(part: Part[Bindings]) -> Document:
    """The part with its counts as a list, because JSON has no tuple keys."""
    value = part.value
    counts = [] if value is None else sorted(value.counts.items())
    value_document = (
        None
        if value is None
        else {
            "counts": [{"vhost": vhost, "exchange": name, "bindings": number} for (vhost, name), number in counts],
            "listed": value.listed,
        }
    )
    return {**{field.name: getattr(part, field.name) for field in fields(part)}, "value": value_document}


def as_json(document: object) -> bytes:
    """Encode as JSON; dataclasses become objects.

    A number beyond 64 bits, which only the sum of damaged figures is, is null, as such a figure itself.
    """
    try:
        return _dumped(document)
    except TypeError:
        return _dumped(_without_giants(document))


def _dumped(document: object) -> bytes:
    return orjson.dumps(document, default=_mapping, option=orjson.OPT_NON_STR_KEYS)


def _without_giants(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    if is_dataclass(value):
        return {field.name: _without_giants(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _without_giants(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_giants(inner) for inner in value]
    return value


def _mapping(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
