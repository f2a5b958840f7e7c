"""slow-disk (D09): operations that wait for the disk are slow, other operations are not.

A confirm of a quorum queue waits for the disk on every version; one of a classic queue only on 3.x (seen on 3.10, 4.0
and 4.3 with syncs that took 0.3 s). Since 4.0 the broker's own disk statistics are all 0.

With a baseline, confirms far above it are reported sooner, and confirms that always take this long (such as with
distant queue members) are suppressed.
"""

from collections.abc import Iterator, Sequence

from ackscope.baselines import Band
from ackscope.findings import (
    Certainty,
    Evidence,
    Facts,
    Finding,
    Inconclusive,
    Involved,
    Severity,
    Suppressed,
    Unit,
    source,
)
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_or_cluster, since_start
from diagnosis.rules.probing._shared.outcomes import stream_name
from diagnosis.series import last
from diagnosis.usual import band_facts, baseline_evidence, is_more, is_sure, of_probe

NAME = "slow-disk"
_WARNING_SAMPLES = 10
"""Minimum number of confirms or syncs for a warning."""
_SAMPLES = 3
"""Minimum number of confirms for any finding: at 0.5 s each, a short diagnosis sees no more."""
_SYNC_SECONDS = 20.0
"""Seconds over which syncs are averaged."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every node by the confirms of its quorum queue, and a 3.x node also by its own statistics."""
    syncs = _syncs(view)
    confirms = [o for o in view.outcomes_of("confirm") if o.state is ProbeState.RUNNING]
    quorum = [o for o in confirms if o.queue_type == "quorum" and o.confirm.count >= _SAMPLES]
    if not quorum and not syncs and view.version is not None and view.version >= (4, 0):
        yield Inconclusive(rule=NAME, reason="no_disk_statistics", permanent=True)
    found: dict[str, Finding] = {}
    usual: set[str] = set()
    for outcome in quorum:
        severity = _severity(view, outcome, confirms)
        facts = _as_usual(view, outcome, severity)
        if facts is not None:
            usual.add(outcome.node)
            subject = node_or_cluster(view, outcome.node or None)
            yield Suppressed(rule=NAME, subject=subject, reason="usual_confirms", facts=facts)
        elif severity is not None:
            found[outcome.node] = _finding(view, outcome.node, outcome, syncs.get(outcome.node), severity)
    for node, seconds in syncs.items():
        judged = {*found, *usual}
        if seconds > view.thresholds.nodes.slow_confirm and node not in judged and "" not in judged:
            found[node] = _finding(view, node, None, seconds, Severity.WARNING)
    yield from (found[node] for node in sorted(found))


def _severity(view: View, outcome: ProbeOutcome, confirms: Sequence[ProbeOutcome]) -> Severity | None:
    """Return the severity by the slow confirms of the last minute; None if there are none or if all is slow."""
    quick = _without_disk(view, outcome.node, confirms)
    limits, times = view.thresholds.nodes, outcome.confirm
    limit = max(limits.slow_confirm, limits.slow_times * (quick or 0.0))
    if quick is None or times.p50 is None or times.p90 is None:
        return None
    if times.p50 > limit and times.count >= _WARNING_SAMPLES:
        return Severity.WARNING
    return Severity.INFO if times.p90 > limit or _is_unusual(view, outcome, limits.slow_times * quick) else None


def _is_unusual(view: View, outcome: ProbeOutcome, quick: float) -> bool:
    """Return whether the median confirm is far above its baseline, and slower than operations without disk."""
    times, floor = outcome.confirm, view.thresholds.usual.confirm_least
    if times.p50 is None or times.count < _WARNING_SAMPLES or times.p50 < max(quick, floor):
        return False
    return is_more(view, times.p50, of_probe(view, outcome, "confirm_p50"))


def _as_usual(view: View, outcome: ProbeOutcome, severity: Severity | None) -> Facts | None:
    """Return the facts for suppressing confirms that are always slow at this hour; None if that is not the case."""
    if severity is None:
        return None
    # A finding based on the median uses the band of medians; one based on the slowest 10 % uses the band of the p99.
    measure = "confirm_p50" if severity is Severity.WARNING else "confirm_p99"
    band, seconds = of_probe(view, outcome, measure), _judged_by(outcome.confirm, severity)
    if not isinstance(band, Band) or not is_sure(view, band) or seconds is None or seconds > band.high:
        return None
    if _is_unusual(view, outcome, 0.0):
        return None
    return {
        "most": severity is Severity.WARNING,
        "confirm_seconds": seconds,
        "band_of": band_facts(band, measure),
    }


def _without_disk(view: View, node: str, confirms: Sequence[ProbeOutcome]) -> float | None:
    """Return the slowest p90 in seconds of operations without disk, of this node if there are any.

    A probe on a busy machine is late in all its streams, so this value includes its error.
    """
    classic = view.version is not None and view.version >= (4, 0)
    streams = {"unroutable", "transient", *(["classic"] if classic else [])}
    p90s = [(o.node, o.confirm.p90) for o in confirms if o.stream in streams]
    p90s += [(o.node, o.steps["declare"].seconds.p90) for o in view.outcomes_of("rtt") if "declare" in o.steps]
    known = [(where, seconds) for where, seconds in p90s if seconds is not None]
    near = [seconds for where, seconds in known if where in {node, ""}] or [seconds for _, seconds in known]
    return max(near, default=None)


def _syncs(view: View) -> dict[str, float]:
    """Return the mean seconds of each node's recent disk syncs, from its own statistics.

    Only RabbitMQ 3.x reports it; nodes with too few syncs are left out.
    """
    found = {}
    for node in view.nodes:
        recent = last(since_start(view.node_history(node.name)), _SYNC_SECONDS)
        if len(recent) < 2:
            continue
        before, after = recent[0].value, recent[-1].value
        counts, means = (before.io_sync_count, after.io_sync_count), (before.io_sync_avg_time, after.io_sync_avg_time)
        if counts[0] is None or counts[1] is None or means[0] is None or means[1] is None:
            continue
        if counts[1] - counts[0] >= _WARNING_SAMPLES:
            found[node.name] = (means[1] * counts[1] - means[0] * counts[0]) / (counts[1] - counts[0])
    return found


def _finding(view: View, node: str, outcome: ProbeOutcome | None, sync: float | None, severity: Severity) -> Finding:
    unusual = outcome is not None and severity is Severity.INFO and _is_unusual(view, outcome, 0.0)
    band = of_probe(view, outcome, "confirm_p50") if outcome is not None and unusual else None
    early = severity is Severity.INFO and not unusual
    judged_by = "sync" if outcome is None else "baseline" if unusual else "p90" if early else "median"
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_or_cluster(view, node or None),
        facts={
            "node": node or None,
            "median_seconds": None if outcome is None else outcome.confirm.p50,
            "p90_seconds": None if outcome is None else outcome.confirm.p90,
            "sync_seconds": sync,
            "judged_by": judged_by,
            "band_of": band_facts(band, "confirm_p50") if isinstance(band, Band) else None,
            "several_nodes": len(view.nodes) > 1,
        },
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        evidence=tuple(_evidence(view, node, outcome, sync)),
        involved=Involved(nodes=(node,) if node else ()),
    )


def _evidence(view: View, node: str, outcome: ProbeOutcome | None, sync: float | None) -> Iterator[Evidence]:
    if outcome is not None:
        yield _confirm("quorum_confirm", outcome)
        for other in view.outcomes_of("confirm"):
            if other.stream in {"unroutable", "transient", "classic"} and other.node in {node, ""}:
                yield _confirm("other_confirm", other)
        for other in view.outcomes_of("rtt")[:1]:
            if "declare" in other.steps:
                yield _timed("round_trip", other, "declare", other.steps["declare"].seconds)
        if outcome.batching is not None and outcome.batching.interval is not None:
            yield Evidence(
                key="confirm_interval",
                value=outcome.batching.interval,
                unit=Unit.SECONDS,
                source=source(f"probe {stream_name(outcome)}", "batching"),
            )
        yield from baseline_evidence(view, of_probe(view, outcome, "confirm_p50"), "confirm_p50")
    if sync is not None:
        yield Evidence(key="sync", value=sync, unit=Unit.SECONDS, source=source("/api/nodes", "io_sync_avg_time"))


def _confirm(key: str, outcome: ProbeOutcome) -> Evidence:
    return _timed(key, outcome, "confirm", outcome.confirm)


def _timed(key: str, outcome: ProbeOutcome, step: str, times: Quantiles) -> Evidence:
    return Evidence(
        key=key,
        value=times.p50,
        unit=Unit.SECONDS,
        source=source(f"probe {stream_name(outcome)}", step),
        facts={"stream": stream_name(outcome), "p90_seconds": times.p90},
    )


def _judged_by(times: Quantiles, severity: Severity) -> float | None:
    return times.p50 if severity is Severity.WARNING else times.p90
