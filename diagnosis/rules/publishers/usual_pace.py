"""publisher-silent of queues that nobody named: at this hour of the week they get messages in nearly every minute.

The share of minutes tells a steady queue from one that is filled in batches, which is silent between them; the sum of
an hour would not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from ackscope.baselines import HOUR_OF_WEEK, Band
from ackscope.findings import Severity, Subject
from ackscope.measures import quantity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import delta, span, stretch
from diagnosis.usual_text import SOURCE, made_of, of_queue, span_of
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, some

NAME = "publisher-silent"


@dataclass(frozen=True, slots=True)
class Silence:
    """A queue that is busy as a rule, and the time in which it got nothing.

    Attributes:
        pace: the band of what is published to it, messages a second.
        busy: the band of the share of minutes in which anything is.
    """

    queue: Queue
    silent: Series[Queue]
    pace: Band
    busy: Band

    @property
    def seconds(self) -> float:
        """How long it got nothing."""
        return span(self.silent)

    @property
    def by_weekday(self) -> bool:
        """It is known of this very hour of the week: what is known of days alone may not be so at a weekend."""
        return self.busy.scope == self.pace.scope == HOUR_OF_WEEK


def against_usual(view: View, named: Sequence[re.Pattern[str]]) -> Iterator[FindingReport]:
    """One finding for each such queue; where many of one virtual host are silent, one about that.

    Args:
        view: the one look that is being judged.
        named: patterns of queues that settings watch anyhow.
    """
    if view.baselines is None:
        return
    found = [silence for queue in view.queues if (silence := _silence(view, queue, named)) is not None]
    by_vhost: dict[str, list[Silence]] = {}
    for silence in found:
        by_vhost.setdefault(silence.queue.vhost, []).append(silence)
    for vhost, group in sorted(by_vhost.items()):
        if len(group) >= view.thresholds.usual.silent_together:
            yield _together(view, vhost, group)
        else:
            yield from (_finding(view, silence) for silence in group)


def _silence(view: View, queue: Queue, named: Sequence[re.Pattern[str]]) -> Silence | None:
    busy = of_queue(view, queue, "busy")
    if not isinstance(busy, Band) or view.moved(queue, "publish"):
        return None
    limits, pace = view.limits(queue).usual, of_queue(view, queue, "published")
    if busy.low < limits.silent_busy or not isinstance(pace, Band) or any(each.search(queue.name) for each in named):
        return None
    silent = stretch(view.history(queue), lambda older, newer: delta((older, newer), "publish") == 0)
    found = Silence(queue=queue, silent=silent, pace=pace, busy=busy)
    if len(silent) < 2 or found.seconds < limits.silent_soon:
        return None
    return found if found.seconds * pace.low >= limits.silent_messages else None


def _severity(view: View, silence: Silence) -> Severity:
    lasts = silence.seconds >= view.limits(silence.queue).publishers.silent_for
    return Severity.WARNING if lasts and silence.by_weekday else Severity.INFO


def _finding(view: View, silence: Silence) -> FindingReport:
    queue, severity = silence.queue, _severity(view, silence)
    bound = f"rabbitmqctl list_bindings -p {quote(queue.vhost)} source_name destination_name routing_key"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=silence.silent[0].at.iso(),
        summary=(
            f"Nobody published to queue {queue.name!r} ({queue.vhost!r}) for {lasting(silence.seconds)} or more; "
            f"{quantity(silence.pace.middle, 'rate')} is usual {_when(silence)}{_later(view, silence, severity)}"
        ),
        cause=(
            f"The broker cannot tell: its publisher stopped, lost its connection or credentials, or a binding to the "
            f"queue is gone. {_connected(view, queue.vhost)}"
        ),
        evidence=tuple(_evidence(silence)),
        next_steps=(
            "read the log of the application that publishes to it",
            f"see that it is bound as it was: {bound} | grep -F -- {quote(queue.name)}",
            "see who is connected: rabbitmqctl list_connections vhost user client_properties state",
            "is it meant to be quiet today, as on a holiday? Then leave it",
        ),
        runbook=runbook(NAME),
    )


def _together(view: View, vhost: str, group: Sequence[Silence]) -> FindingReport:
    most = sorted(group, key=lambda each: (-each.pace.middle, each.queue.name))
    longest = max(group, key=lambda each: (each.seconds, each.queue.name))
    severity = min((_severity(view, each) for each in group), key=lambda each: each.urgency)
    names = some(repr(each.queue.name) for each in most)
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.silent[0].at.iso() for each in group),
        summary=(
            f"Nobody published to {amount(len(group), 'queue')} of vhost {vhost!r} for {lasting(longest.seconds)} or "
            f"more that are busy as a rule {_when(longest)}: {names}{_later(view, longest, severity)}"
        ),
        cause=(
            "They fell silent together: one application, or what all of them need, stopped, lost its connection or its "
            f"credentials; or the day is a quiet one. {_connected(view, vhost)}"
        ),
        evidence=tuple(line for each in most[:3] for line in _evidence(each)),
        next_steps=(
            "see who is connected: rabbitmqctl list_connections vhost user client_properties state",
            "read the log of the application that publishes to them; was anything deployed, or a password changed?",
            "is it meant to be quiet today, as on a holiday? Then leave it",
        ),
        runbook=runbook(NAME),
    )


def _evidence(silence: Silence) -> Iterator[EvidenceReport]:
    queue = silence.queue
    total = queue.stats.publish or 0
    yield EvidenceReport(
        what=f"published to {queue.name!r}",
        value=f"0 messages in {lasting(silence.seconds)}; {total} since the broker counts",
        expected=f"{span_of(silence.pace, 'published')} {made_of(silence.pace)}",
        source=f"/api/queues message_stats.publish; {SOURCE}",
    )
    yield EvidenceReport(
        what="minutes of this hour that usually have a publish",
        value=f"{span_of(silence.busy, 'busy')}",
        source=SOURCE,
    )


def _when(silence: Silence) -> str:
    return made_of(silence.pace).partition(",")[0]


def _later(view: View, silence: Silence, severity: Severity) -> str:
    if severity is not Severity.INFO:
        return ""
    if not silence.by_weekday:
        return "; that is known of days and not of weekdays, so a weekend or a quiet day looks the same"
    return f"; a deployment looks the same, a warning comes after {lasting(view.thresholds.publishers.silent_for)}"


def _connected(view: View, vhost: str) -> str:
    others = sorted({repr(client(each, each.name)) for each in view.connections if each.vhost == vhost})
    if not others:
        return "No application of its vhost is connected."
    verb = "is" if len(others) == 1 else "are"
    return f"{amount(len(others), 'application')} of its vhost {verb} connected: {some(others)}."
