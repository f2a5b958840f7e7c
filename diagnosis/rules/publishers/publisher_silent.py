"""publisher-silent (A15): nobody publishes to a queue that is always in use.

The owner can name such queues in `diagnosis.publishers.silent_queues`. Others are found from history: queues that
usually get messages in nearly every minute of this hour of the week. The share of busy minutes distinguishes them from
queues that are filled in batches, which an hourly sum would not.

Without history, a queue that got messages steadily is reported as soon as what fed it goes on without it: then it is
not the publisher that pauses.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ackscope.baselines import HOUR_OF_WEEK, Band
from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Fact,
    Facts,
    Finding,
    Involved,
    Severity,
    Subject,
    Suppressed,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.rules.publishers._shared.starved_queues import StarvedQueue, starved_queues
from diagnosis.rules.queues._shared.queue import queue_subject
from diagnosis.series import span, unmoved_tail
from diagnosis.usual import SOURCE, band_facts, of_queue
from diagnosis.window import Series

NAME = "publisher-silent"


@dataclass(frozen=True, slots=True)
class SilentQueue:
    """A queue that is usually busy, and the time without a publish.

    Attributes:
        silent: its readings since the last publish.
        rate: the band of messages published to it per second.
        busy: the band of the share of minutes with a publish.
    """

    queue: Queue
    silent: Series[Queue]
    rate: Band
    busy: Band

    @property
    def seconds(self) -> float:
        """Seconds without a publish."""
        return span(self.silent)

    @property
    def by_weekday(self) -> bool:
        """Whether both bands are of this hour of the week; bands over all days may be wrong at a weekend."""
        return self.busy.scope == self.rate.scope == HOUR_OF_WEEK


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each named or usually busy queue that got no message for a long time, or is starved."""
    patterns = [re.compile(pattern) for pattern in view.thresholds.publishers.silent_queues]
    found = [*_below_baseline(view, patterns), *_named(view, patterns)]
    yield from found
    known = {(each.vhost, each.name) for finding in found for each in finding.involved.queues}
    for starved in starved_queues(view):
        queue = starved.found.queue
        if queue.key in known:
            continue
        if starved.moved_to:
            facts: Facts = {"moved_to": list(starved.moved_to), "rate_before": starved.found.rate}
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="moved", facts=facts)
        else:
            yield _starved_finding(view, starved)


def _named(view: View, patterns: Sequence[re.Pattern[str]]) -> Iterator[Finding]:
    """Yield one finding per queue that settings name and that is silent."""
    for queue in view.queues if patterns else ():
        if not any(pattern.search(queue.name) for pattern in patterns) or not queue.stats.publish:
            # A queue that never got a message has no baseline.
            continue
        silent = _since_last_publish(view, queue)
        if len(silent) > 1 and span(silent) >= view.limits(queue).publishers.silent_for:
            yield _named_finding(view, queue, silent)


def _since_last_publish(view: View, queue: Queue) -> Series[Queue]:
    return unmoved_tail(view.history(queue), "publish")


def _below_baseline(view: View, named: Sequence[re.Pattern[str]]) -> Iterator[Finding]:
    """Yield one finding per usually busy queue that is silent, or one per virtual host with many of them."""
    if view.baselines is None:
        return
    found = [each for queue in view.queues if (each := _silent_queue(view, queue, named)) is not None]
    by_vhost: dict[str, list[SilentQueue]] = {}
    for each in found:
        by_vhost.setdefault(each.queue.vhost, []).append(each)
    for vhost, group in sorted(by_vhost.items()):
        if len(group) >= view.thresholds.usual.silent_together:
            yield _baseline_finding(view, Subject(kind="vhost", name=vhost), vhost, group)
        else:
            for each in group:
                queue = each.queue
                subject = Subject(kind="queue", name=queue.name, vhost=vhost, node=queue.node)
                yield _baseline_finding(view, subject, vhost, [each])


def _silent_queue(view: View, queue: Queue, named: Sequence[re.Pattern[str]]) -> SilentQueue | None:
    busy = of_queue(view, queue, "busy")
    if not isinstance(busy, Band) or view.moved(queue, "publish"):
        return None
    limits, rate = view.limits(queue).usual, of_queue(view, queue, "published")
    if busy.low < limits.silent_busy or not isinstance(rate, Band) or any(each.search(queue.name) for each in named):
        return None
    silent = _since_last_publish(view, queue)
    found = SilentQueue(queue=queue, silent=silent, rate=rate, busy=busy)
    if len(silent) < 2 or found.seconds < limits.silent_soon:
        return None
    return found if found.seconds * rate.low >= limits.silent_messages else None


def _severity(view: View, silent: SilentQueue) -> Severity:
    late = silent.seconds >= view.limits(silent.queue).publishers.silent_for
    return Severity.WARNING if late and silent.by_weekday else Severity.INFO


def _baseline_finding(view: View, subject: Subject, vhost: str, group: Sequence[SilentQueue]) -> Finding:
    busiest = sorted(group, key=lambda each: (-each.rate.middle, each.queue.name))
    longest = max(group, key=lambda each: (each.seconds, each.queue.name))
    severity = min((_severity(view, each) for each in group), key=lambda each: each.urgency)
    return Finding(
        rule=NAME,
        severity=severity,
        subject=subject,
        since=min(each.silent[0].at.iso() for each in group),
        facts={
            **_facts(view, vhost, [each.queue for each in busiest], longest.seconds),
            "usual_rate": longest.rate.middle,
            "band_of": band_facts(longest.rate, "published"),
            "by_weekday": longest.by_weekday,
            "warning_after_seconds": view.thresholds.publishers.silent_for,
            "starved": None,
        },
        evidence=tuple(item for each in busiest[:3] for item in _baseline_evidence(each)),
        involved=Involved(queues=tuple(queue_ref(each.queue) for each in busiest)),
        certainty=Certainty.EARLY if severity is Severity.INFO and longest.by_weekday else Certainty.LIKELY,
        seen_seconds=longest.seconds,
    )


def _baseline_evidence(silent: SilentQueue) -> Iterator[Evidence]:
    yield Evidence(
        key="published",
        value=0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.publish") + SOURCE,
        facts={
            "queue": queue_facts(silent.queue),
            "silent_seconds": silent.seconds,
            "published_in_total": silent.queue.stats.publish or 0,
            "band_of": band_facts(silent.rate, "published"),
        },
    )
    yield Evidence(
        key="busy_minutes",
        source=SOURCE,
        facts={"queue": queue_facts(silent.queue), "band_of": band_facts(silent.busy, "busy")},
    )


def _named_finding(view: View, queue: Queue, silent: Series[Queue]) -> Finding:
    seconds = span(silent)
    expected_within = view.limits(queue).publishers.silent_for
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=silent[0].at.iso(),
        facts={
            **_facts(view, queue.vhost, [queue], seconds),
            "usual_rate": None,
            "band_of": None,
            "by_weekday": None,
            "warning_after_seconds": expected_within,
            "starved": None,
        },
        evidence=(
            Evidence(
                key="published",
                value=0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
                facts={
                    "queue": queue_facts(queue),
                    "silent_seconds": seconds,
                    "published_in_total": queue.stats.publish or 0,
                    "expected_within_seconds": expected_within,
                    "band_of": None,
                },
            ),
        ),
        involved=Involved(queues=(queue_ref(queue),)),
        seen_seconds=seconds,
    )


def _starved_finding(view: View, starved: StarvedQueue) -> Finding:
    queue, seconds = starved.found.queue, starved.found.seconds
    late = view.limits(queue).publishers.silent_for
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if seconds >= late else Severity.INFO,
        subject=queue_subject(queue),
        since=starved.found.quiet[0].at.iso(),
        facts={
            **_facts(view, queue.vhost, [queue], seconds),
            "usual_rate": None,
            "band_of": None,
            "by_weekday": None,
            "warning_after_seconds": late,
            "starved": starved.facts(view),
        },
        evidence=(
            Evidence(
                key="inflow",
                value=0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="goes_on",
                value=starved.still_rate,
                unit=Unit.PER_SECOND,
                source=source("/api/exchanges", "message_stats.publish_in"),
            ),
        ),
        involved=Involved(
            queues=(queue_ref(queue),),
            exchanges=tuple(ExchangeRef(queue.vhost, name) for name in starved.exchanges),
        ),
        certainty=Certainty.LIKELY if seconds >= late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _facts(view: View, vhost: str, queues: Sequence[Queue], seconds: float) -> dict[str, Fact]:
    connected = {client_name(each) or each.name for each in view.connections if each.vhost == vhost}
    return {
        "vhost": vhost,
        "queues": [queue.name for queue in queues],
        "silent_seconds": seconds,
        "connected_clients": sorted(connected),
        "alarms": [f"{alarm.resource} on {alarm.node}" for alarm in view.alarms],
    }
