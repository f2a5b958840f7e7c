"""queue-leak (C09): the number of queues keeps rising, or there are so many that their number alone is costly.

The rule judges the total of the overview. The names of new queues only help to show which client declares them.

The law: a leak goes on. The total rises in most parts of the time that a finding claims, and at about the rate that it
claims. A deployment is a step: it has the same mean over an hour, and rises in a few minutes of it.
Source: https://www.rabbitmq.com/docs/quorum-queues#atom-use
"""

from collections.abc import Iterator
from itertools import pairwise

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, Subject, source
from ackscope.snapshot import Overview, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import if_known
from diagnosis.rules.queues._shared.queue import certainty, is_private
from diagnosis.series import rising, span, steps
from diagnosis.thresholds.queues import QueueThresholds
from diagnosis.window import Series

NAME = "queue-leak"

TOTAL = source("/api/overview", "object_totals.queues")
NAMED = 20
"""Maximum new queues that a finding names."""
_PARTS = 4
"""Equal parts of a slow leak. In all but one, the total rises at no less than this share of the mean rate."""
_PART_RATE = 0.5


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the number of queues and its change."""
    limits = view.thresholds.queues
    quick = _rising(view.window.readings("overview"), view.thresholds.interval)
    minimum = max(limits.leak_least, limits.leak_rate * span(quick))
    if quick and span(quick) >= limits.leak_seen and _gained(quick) >= minimum:
        severity = Severity.WARNING if span(quick) >= limits.leak_quick_for else Severity.INFO
        yield _growth_finding(view, quick, severity, limits.leak_quick_for)
    elif grows := _slow_leak(view.trend("overview"), limits):
        severity = Severity.WARNING if span(grows) >= limits.leak_for else Severity.INFO
        yield _growth_finding(view, grows, severity, limits.leak_for)
    elif (_total(view.overview) or 0) > limits.leak_many:
        yield _many_finding(view, _total(view.overview) or 0)


def _total(overview: Overview | None) -> int | None:
    return overview.queues if overview is not None else None


def _rising(readings: Series[Overview], interval: float) -> Series[Overview]:
    """Return the latest stretch of at least two intervals in each of which the number of queues rose."""
    found = rising(readings, interval, lambda overview: overview.queues)
    # One look has no more than two readings, so that it has one rise.
    return () if len(steps(found, interval)) < 2 and len(readings) > 2 else found


def _gained(readings: Series[Overview]) -> int:
    return (readings[-1].value.queues or 0) - (readings[0].value.queues or 0)


def _never_fell(readings: Series[Overview]) -> bool:
    numbers = [seen.value.queues for seen in readings]
    return all(a is not None and b is not None and a <= b for a, b in pairwise(numbers))


def _slow_leak(trend: Series[Overview], limits: QueueThresholds) -> Series[Overview]:
    """Return the longest tail in which the number of queues rises all the time and by enough; else ().

    What rises for less than the time of a leak must be enough for all of the time that was seen.
    """
    if span(trend) < limits.leak_for or not _never_fell(trend):
        return ()
    starts = range(len(trend) - _PARTS + 1)
    grows = next((trend[start:] for start in starts if _goes_on(trend[start:])), ())
    seconds = span(grows) if span(grows) >= limits.leak_for else span(trend)
    return grows if grows and _gained(grows) > limits.leak_slow * seconds / 60 else ()


def _goes_on(readings: Series[Overview]) -> bool:
    """Return whether the number rises at once, still does, and does so in most parts of the time."""
    if _gained(readings[:2]) <= 0:
        return False
    start, part = readings[0].at.mono, span(readings) / _PARTS
    numbers = [_number_at(readings, start + place * part) for place in range(_PARTS + 1)]
    gains = [after - before for before, after in pairwise(numbers)]
    least = _PART_RATE * _gained(readings) / _PARTS
    return gains[-1] > 0 and sum(gain >= least for gain in gains) >= _PARTS - 1


def _number_at(readings: Series[Overview], moment: float) -> float:
    """Return the number of queues at a moment between two readings, as if it changed evenly from one to the next."""
    for older, newer in pairwise(readings):
        if moment < newer.at.mono:
            passed = (moment - older.at.mono) / newer.at.since(older.at)
            return (older.value.queues or 0) + passed * _gained((older, newer))
    return float(readings[-1].value.queues or 0)


def _growth_finding(view: View, readings: Series[Overview], severity: Severity, limit: float) -> Finding:
    seconds, gained = span(readings), _gained(readings)
    total = readings[-1].value.queues or 0
    new = _new_queues(view)
    evidence = [Evidence(key="growth", value=total, source=TOTAL)]
    if new:
        evidence.append(Evidence(key="new_queues", source=source("/api/queues", "name")))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=readings[0].at.iso(),
        facts={
            **_totals(total),
            "gained": gained,
            "over_seconds": seconds,
            "growth_rate": gained / seconds,
            "total_before": readings[0].value.queues,
            "warning_after_seconds": limit,
            "new": None if new is None else _in_common(new),
            "limit": view.thresholds.queues.leak_many,
        },
        certainty=certainty(severity, seconds, limit),
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=Involved(queues=tuple(QueueRef(queue.vhost, queue.name) for queue in (new or [])[:NAMED])),
    )


def _totals(total: int) -> dict[str, Fact]:
    """Return the number of queues, and a limit that leaves room for the needed ones, as facts."""
    return {"total": total, "suggested_limit": total + max(100, total // 5)}


def _new_queues(view: View) -> list[Queue] | None:
    """Return the queues that are new in the latest reading, by name; None if there is only one reading."""
    seen = view.window.readings("queues")
    if len(seen) < 2:
        return None
    # The reading before the last is complete; older ones may lack queues that change all the time.
    before = {queue.key for queue in seen[-2].value}
    new = (queue for queue in view.all_queues if queue.key not in before)
    return sorted(new, key=lambda queue: (queue.name, queue.vhost))


def _in_common(new: list[Queue]) -> dict[str, Fact]:
    """Return what new queues have in common: virtual hosts, name prefix, and whether they are ever deleted."""
    prefix = _common_prefix([queue.name for queue in new]) if len(new) > 1 else ""
    return {
        "count": len(new),
        "names": [queue.name for queue in new[:NAMED]],
        "vhosts": sorted({queue.vhost for queue in new}),
        "prefix": prefix if len(prefix) > 2 else None,
        "private": sum(is_private(queue) for queue in new),
        "expire": if_known(lambda: any(queue.setting("expires") for queue in new), None),
        "expires_seconds": if_known(lambda: _expires_seconds(new), None),
    }


def _expires_seconds(new: list[Queue]) -> float | None:
    """Return the longest time without use after which the broker deletes each of these queues; None if some stay."""
    found = [queue.setting("expires") for queue in new]
    times = [each / 1000 for each in found if isinstance(each, int)]
    return max(times) if times and len(times) == len(found) else None


def _common_prefix(names: list[str]) -> str:
    """Return the common prefix of all names, which is that of the first and the last in order."""
    first, final = min(names), max(names)
    same = next((place for place, pair in enumerate(zip(first, final, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:same]


def _many_finding(view: View, total: int) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            **_totals(total),
            **dict.fromkeys(("gained", "over_seconds", "growth_rate", "total_before", "warning_after_seconds", "new")),
            "limit": view.thresholds.queues.leak_many,
        },
        certainty=Certainty.CERTAIN,
        evidence=(Evidence(key="total", value=total, source=TOTAL),),
    )
