"""slow-disk (D09): what waits for the disk is slow, and what does not is not.

A confirm of a quorum queue waits for the disk on every version; one of a classic queue on 3.x only (seen on 3.10, 4.0
and 4.3 with syncs that took 0.3 s). Since 4.0 the broker's own figures of its disk are all 0.

Where it is known what is usual at this hour, confirms that are far above it are told sooner, and those that always take
as long (members of a queue far apart) are left alone.
"""

from collections.abc import Iterator

from ackscope.baselines import Band
from ackscope.findings import Severity, Subject
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, SuppressedReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_cluster, of_node, on, since_start
from diagnosis.series import last
from diagnosis.usual_text import is_more, is_sure, line, of_probe, spelt

NAME = "slow-disk"
_ENOUGH = 10
"""Messages or syncs that a warning must rest on."""
_LEAST = 3
"""Messages that anything must rest on: at half a second each there are no more in a short look."""
_LATELY = 20.0


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every node by the confirms of its quorum queue, and one of 3.x by its own figures too."""
    syncs = _syncs(view)
    confirms = [o for o in view.outcomes_of("confirm") if o.state is ProbeState.RUNNING]
    waiting = [o for o in confirms if o.queue_type == "quorum" and o.confirm.count >= _LEAST]
    if not waiting and not syncs and view.version is not None and view.version >= (4, 0):
        yield InconclusiveReport(
            rule=NAME,
            because="since 4.0 RabbitMQ tells nothing of its disk; what a client waits for would, and no confirm "
            "probe with a quorum queue runs",
            needs="give the address for probes (--amqp, or amqp: in the configuration)",
            permanent=True,
        )
    found: dict[str, FindingReport] = {}
    usual: set[str] = set()
    for outcome in waiting:
        severity = _severity(view, outcome, confirms)
        reason = _as_usual(view, outcome, severity)
        if reason is not None:
            usual.add(outcome.node)
            yield SuppressedReport(rule=NAME, subject=_subject(view, outcome.node), because=reason)
        elif severity is not None:
            found[outcome.node] = _finding(view, outcome.node, outcome, syncs.get(outcome.node), severity)
    for node, seconds in syncs.items():
        told = {*found, *usual}
        if seconds > view.thresholds.nodes.slow_confirm and node not in told and "" not in told:
            found[node] = _finding(view, node, None, seconds, Severity.WARNING)
    yield from (found[node] for node in sorted(found))


def _severity(view: View, outcome: ProbeOutcome, confirms: list[ProbeOutcome]) -> Severity | None:
    """By how many of the last minute's confirms were slow; None where all else is slow too, or nothing is."""
    quick = _quick(view, outcome.node, confirms)
    limits, times = view.thresholds.nodes, outcome.confirm
    limit = max(limits.slow_confirm, limits.slow_times * (quick or 0.0))
    if quick is None or times.p50 is None or times.p90 is None:
        return None
    if times.p50 > limit and times.count >= _ENOUGH:
        return Severity.WARNING
    return Severity.INFO if times.p90 > limit or _unusual(view, outcome, limits.slow_times * quick) else None


def _unusual(view: View, outcome: ProbeOutcome, quick: float) -> bool:
    """Whether most confirms take far longer than at this hour as a rule, and longer than what needs no disk."""
    times, least = outcome.confirm, view.thresholds.usual.confirm_least
    if times.p50 is None or times.count < _ENOUGH or times.p50 < max(quick, least):
        return False
    return is_more(view, times.p50, of_probe(view, outcome, "confirm_p50"))


def _as_usual(view: View, outcome: ProbeOutcome, severity: Severity | None) -> str | None:
    """Why confirms that are slow can be left alone: at this hour they always are. None where they cannot."""
    if severity is None:
        return None
    # What was found by the median is held against medians, and what by the slowest tenth against a bound of it.
    measure = "confirm_p50" if severity is Severity.WARNING else "confirm_p99"
    band, seconds = of_probe(view, outcome, measure), _shown(outcome.confirm, severity)
    if not isinstance(band, Band) or not is_sure(view, band) or seconds is None or seconds > band.high:
        return None
    if _unusual(view, outcome, 0.0):
        return None
    most = "most" if severity is Severity.WARNING else "some"
    return f"{most} confirms that wait for the disk took {seconds * 1000:.0f} ms; {spelt(band, measure)}"


def _quick(view: View, node: str, confirms: list[ProbeOutcome]) -> float | None:
    """Seconds that the slowest of those takes which need no disk, one in ten; of this node where there are any.

    A probe whose own machine is too busy is late in all its streams, so that its doubt is in this figure.
    """
    classic = view.version is not None and view.version >= (4, 0)
    streams = {"unroutable", "transient", *(["classic"] if classic else [])}
    figures = [(o.node, o.confirm.p90) for o in confirms if o.stream in streams]
    figures += [(o.node, o.steps["declare"].seconds.p90) for o in view.outcomes_of("rtt") if "declare" in o.steps]
    told = [(where, seconds) for where, seconds in figures if seconds is not None]
    near = [seconds for where, seconds in told if where in {node, ""}] or [seconds for _, seconds in told]
    return max(near, default=None)


def _syncs(view: View) -> dict[str, float]:
    """Node -> seconds that a sync took lately, by its own figures; 3.x only, and only where there were enough."""
    found = {}
    for node in view.nodes:
        lately = last(since_start(view.node_history(node.name)), _LATELY)
        if len(lately) < 2:
            continue
        before, after = lately[0].value, lately[-1].value
        counts, means = (before.io_sync_count, after.io_sync_count), (before.io_sync_avg_time, after.io_sync_avg_time)
        if counts[0] is None or counts[1] is None or means[0] is None or means[1] is None:
            continue
        if counts[1] - counts[0] >= _ENOUGH:
            found[node.name] = (means[1] * counts[1] - means[0] * counts[0]) / (counts[1] - counts[0])
    return found


def _finding(
    view: View, name: str, outcome: ProbeOutcome | None, sync: float | None, severity: Severity
) -> FindingReport:
    confirms = list(view.outcomes_of("confirm"))
    several = len(view.nodes) > 1
    evidence = []
    if outcome is not None:
        evidence += [
            _timed(f"confirm of a {outcome.queue_type} queue", outcome.confirm.p50, outcome.confirm.p90, "confirm"),
            *(
                _timed(f"confirm of {other.stream}", other.confirm.p50, other.confirm.p90, "confirm")
                for other in confirms
                if other.stream in {"unroutable", "transient", "classic"} and other.node in {name, ""}
            ),
            *(
                _timed("a question to the broker", step.p50, step.p90, "rtt")
                for other in view.outcomes_of("rtt")[:1]
                if "declare" in other.steps
                for step in (other.steps["declare"].seconds,)
            ),
        ]
        if outcome.batching is not None and outcome.batching.interval is not None:
            value = f"{outcome.batching.interval * 1000:.0f} ms"
            evidence.append(
                EvidenceReport(what="the broker confirms in groups, every", value=value, source="probe confirm")
            )
        evidence += line(view, of_probe(view, outcome, "confirm_p50"), "confirm_p50")
    if sync is not None:
        evidence.append(
            EvidenceReport(
                what="a sync of the disk takes",
                value=f"{sync * 1000:.0f} ms",
                expected="below 20 ms",
                source="/api/nodes io_sync_avg_time, of those of the last 20 s",
            )
        )
    subject = _subject(view, name)
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=subject,
        since=None,
        summary=f"The disk of {subject} is slow: {_told(view, outcome, sync, severity)}",
        cause=(
            "A quorum queue confirms once a message is safe on disk, and every write to the disk waits; what needs no "
            "disk answers at once, so it is neither the network nor the processor."
            + (" In a cluster it may be the disks of the other members, or the way to them." if several else "")
        ),
        evidence=tuple(evidence),
        next_steps=(
            "on its machine, see how long writes take and who makes them: iostat -x 1 5; pidstat -d 1 5",
            "a cloud volume: see whether its credits or its limit of operations are used up",
            f"is it this node alone? then let others lead: rabbitmq-upgrade {on(name or None)}drain",
            "see whether something else syncs on this disk: backup, snapshot, another database",
            "later: a disk of its own for the data directory; publish with many confirms outstanding",
        ),
        runbook=runbook(NAME),
    )


def _told(view: View, outcome: ProbeOutcome | None, sync: float | None, severity: Severity) -> str:
    """What clients feel of it."""
    takes = sync if outcome is None else _shown(outcome.confirm, severity)
    if severity is Severity.WARNING:
        return f"most confirms that wait for it take {(takes or 0) * 1000:.0f} ms"
    if outcome is not None and _unusual(view, outcome, 0.0):
        band = of_probe(view, outcome, "confirm_p50")
        usual = f"; {spelt(band, 'confirm_p50')}" if isinstance(band, Band) else ""
        return f"most confirms that wait for it take {(outcome.confirm.p50 or 0) * 1000:.0f} ms{usual}"
    return (
        f"some confirms took {(takes or 0) * 1000:.0f} ms; a warning when it is most of them: a short stall looks the "
        "same"
    )


def _subject(view: View, name: str) -> Subject:
    return of_node(name) if name else of_cluster(view)


def _shown(times: Quantiles, severity: Severity) -> float | None:
    return times.p50 if severity is Severity.WARNING else times.p90


def _timed(what: str, middle: float | None, most: float | None, probe: str) -> EvidenceReport:
    told = (
        "no figure"
        if middle is None or most is None
        else f"{middle * 1000:.1f} ms, one in ten over {most * 1000:.1f} ms"
    )
    return EvidenceReport(what=what, value=told, source=f"probe {probe}, last minute")
