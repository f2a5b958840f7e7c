"""What one receiver knows of the findings, and what it has to get next.

No network, no clock. The record compares what is present with what was delivered. While a receiver is
away, or its hours are quiet, nothing piles up but the findings themselves: one that began and ended meanwhile becomes
one line of a summary.
"""

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, FindingKey, Severity, flat
from ackscope.triage import Triage
from exporter.delivery.settings import ReceiverSettings, RouteSettings
from exporter.triage.store import worst_severity

MAX_INCIDENTS = 1000
"""Findings that the record of one receiver holds; the least severe ones of a diagnosis are left out first."""

Brief = dict[str, Any]
"""A finding as text, without its evidence: what a message about its end needs."""


class IncidentKey(NamedTuple):
    """The identity of a finding in all clusters; `vhost` is "" if the subject has none."""

    cluster: str
    rule: str
    kind: str
    vhost: str
    name: str

    @property
    def finding(self) -> FindingKey:
        """The identity within the cluster."""
        return (self.rule, self.kind, self.vhost, self.name)

    @property
    def fingerprint(self) -> str:
        """A short, stable text of it, for receivers that need one."""
        return hashlib.sha256(orjson.dumps(list(self))).hexdigest()[:16]


class EventKind(StrEnum):
    """What a message says about a finding."""

    START = "start"
    """It began."""
    UPDATE = "update"
    """It became more or less severe, or more follows from it."""
    REMINDER = "reminder"
    """It lasts."""
    RESOLVE = "resolve"
    """It is over for the receiver; `EndReason` says why."""
    MISSED = "missed"
    """It began and ended while nothing could be delivered."""
    TEST = "test"
    """A test of the receiver."""


class EndReason(StrEnum):
    """Why a finding is over for a receiver."""

    ENDED = "ended"
    """Diagnosis does not find it any more."""
    JOINED = "joined"
    """It follows from another finding, whose message contains it."""
    MUTED = "muted"
    """Somebody muted it."""
    UNROUTED = "unrouted"
    """It is no longer for this receiver: its severity, or the routes, changed."""
    REMOVED = "removed"
    """Its cluster is no longer watched."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the receiver was last sent about a finding: when, how severe, and the rules of what follows from it."""

    at: float
    severity: Severity
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingIncident:
    """One finding, from its begin until the receiver knows its end. Times are seconds since 1970.

    Attributes:
        began: when it was first seen.
        severity: the worst severity of the finding and what follows from it.
        rules: rules of what follows from it.
        finding: as last seen; None since a restart.
        brief: as last rendered; None before.
        delivered: None if the receiver knows nothing of it.
        ended: when it was over; None while it is present.
        joined: the finding that it follows from.
    """

    key: IncidentKey
    began: float
    severity: Severity
    rules: tuple[str, ...] = ()
    finding: Finding | None = None
    brief: Brief | None = None
    delivered: Delivered | None = None
    ended: float | None = None
    reason: EndReason | None = None
    joined: IncidentKey | None = None


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """One line of a message: what happened, and to which finding."""

    kind: EventKind
    incident: FindingIncident


Rendering = Callable[[FindingIncident], Brief]
"""Renders a finding that is present as `Brief`."""


class IncidentRecord:
    """All findings of one receiver. Threads that share it hold its `lock`.

    Args:
        settings: repetition and quiet hours.
        routes: which findings the receiver gets.
        settle: seconds that a restored finding has to be absent until it counts as ended.
        incidents: those of an earlier process.
        start: begin of this process.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        routes: Sequence[RouteSettings],
        settle: float,
        incidents: Iterable[FindingIncident] = (),
        start: Instant | None = None,
    ) -> None:
        self.apply(settings, routes, settle)
        self._incidents = {it.key: it for it in incidents}
        self.lock = threading.Lock()
        self._start = start or Instant(wall=0.0, mono=float("-inf"))
        self._sending: set[IncidentKey] = set()
        self._omitted: set[IncidentKey] = set()
        self.dropped = 0

    def apply(self, settings: ReceiverSettings, routes: Sequence[RouteSettings], settle: float) -> None:
        """Use other settings from now on."""
        self._settings, self._routes, self._settle = settings, tuple(routes), settle

    def observe(self, result: DiagnosisResult, triage: Mapping[FindingKey, Triage], now: Instant) -> bool:
        """Record the diagnosis of one cluster; whether something changed for the receiver."""
        before, cluster = dict(self._incidents), result.cluster
        present = {IncidentKey(cluster, *it.key): it for it in result.findings if not it.is_over}
        why = {key: reason for key, it in present.items() if (reason := self._withheld(key, it, triage, now))}
        causes = {
            IncidentKey(cluster, *each.key): IncidentKey(cluster, *cause.key)
            for cause in result.findings
            for each in flat(cause.consequences)
        }
        # The findings of an inconclusive rule are unknown, not absent.
        conclusive = set(result.checked) - {gap.rule for gap in result.inconclusive}
        settled = now.since(self._start) >= self._settle
        for key, it in before.items():
            if key.cluster != cluster or it.ended is not None or (key in present and key not in why):
                continue
            joined = causes.get(key) if key not in present else None
            if joined is None and key not in why and (key.rule not in conclusive or not (it.finding or settled)):
                continue
            self._end(key, why.get(key, EndReason.JOINED if joined else EndReason.ENDED), now, joined)
        omitted = {key for key, it in present.items() if key not in why and not self._see(key, it, now)}
        known = {key for key in self._omitted if key.cluster == cluster}
        self.dropped += len(omitted - known)
        self._omitted = (self._omitted - known) | omitted
        return self._incidents != before

    def keep_clusters(self, clusters: Collection[str], now: Instant) -> None:
        """End the findings of clusters that are no longer watched."""
        for key, it in list(self._incidents.items()):
            if key.cluster not in clusters and it.ended is None:
                self._end(key, EndReason.REMOVED, now)

    def due(self, now: Instant) -> list[DeliveryEvent]:
        """What the receiver has to get now, most urgent first. It counts as being sent until the next call."""
        for key, it in list(self._incidents.items()):
            if it.ended is not None and it.delivered is None and it.reason is not EndReason.ENDED:
                del self._incidents[key]  # it was being sent when it ended, and did not arrive
        events = [
            DeliveryEvent(kind, it)
            for it in self._incidents.values()
            if (kind := self._kind(it, now)) is not None and not self._settings.holds(it.severity, now.wall)
        ]
        self._sending = {event.incident.key for event in events}
        return sorted(events, key=lambda it: (it.incident.severity.urgency, it.incident.began, it.incident.key))

    def commit(self, events: Iterable[DeliveryEvent], now: Instant) -> None:
        """Record that the receiver got these events."""
        for event in events:
            key, it = event.incident.key, self._incidents.get(event.incident.key)
            if it is None:
                continue
            if event.kind in {EventKind.RESOLVE, EventKind.MISSED}:
                if it.ended is not None:
                    del self._incidents[key]
                else:  # it returned while its end was delivered
                    self._incidents[key] = replace(it, delivered=None)
            else:
                delivered = Delivered(now.wall, event.incident.severity, event.incident.rules)
                self._incidents[key] = replace(it, delivered=delivered, brief=event.incident.brief or it.brief)

    def active(self) -> list[FindingIncident]:
        """What the receiver knows and is not over."""
        return [it for it in self._incidents.values() if it.delivered is not None and it.ended is None]

    def all(self) -> list[FindingIncident]:
        """Everything."""
        return list(self._incidents.values())

    def waiting(self, now: Instant) -> int:
        """Number of findings that the receiver does not know in their present state, those in quiet hours included."""
        kinds = [self._kind(it, now) for it in self._incidents.values()]
        return sum(kind is not None for kind in kinds)

    def render(self, rendering: Rendering) -> None:
        """Render what was never rendered, so that it can be reported after its end and after a restart."""
        for key, it in self._incidents.items():
            if it.brief is None and it.finding is not None:
                self._incidents[key] = replace(it, brief=rendering(it))

    def _withheld(
        self, key: IncidentKey, finding: Finding, triage: Mapping[FindingKey, Triage], now: Instant
    ) -> EndReason | None:
        """Why a present finding is not for the receiver; None if it is."""
        severity, about = worst_severity(finding), triage.get(key.finding)
        if about is not None and about.mutes(severity, now.wall):
            return EndReason.MUTED
        vhosts = frozenset(each.subject.vhost or "" for each in flat((finding,)))
        routed = any(route.matches(key.cluster, key.rule, vhosts, severity) for route in self._routes)
        return None if routed else EndReason.UNROUTED

    def _see(self, key: IncidentKey, finding: Finding, now: Instant) -> bool:
        """Record a present finding; False if there are too many."""
        severity = worst_severity(finding)
        rules = tuple(sorted({each.rule for each in flat(finding.consequences)}))
        it = self._incidents.get(key)
        if it is None:
            if len(self._incidents) >= MAX_INCIDENTS and not self._make_room(severity):
                return False
            it = FindingIncident(key=key, began=now.wall, severity=severity)
        brief = None if it.ended is not None and it.delivered is None else it.brief
        self._incidents[key] = replace(
            it, finding=finding, severity=severity, rules=rules, brief=brief, ended=None, reason=None, joined=None
        )
        return True

    def _make_room(self, severity: Severity) -> bool:
        """Forget a finding that was never delivered: the oldest one that is over, or a less severe one, if any."""
        unknown = [it for it in self._incidents.values() if it.delivered is None]
        over = [it for it in unknown if it.ended is not None]
        less = [it for it in unknown if it.severity.urgency > severity.urgency]
        if not over and not less:
            return False
        victim = min(over, key=lambda it: it.began) if over else max(less, key=lambda it: it.severity.urgency)
        del self._incidents[victim.key]
        self.dropped += 1
        return True

    def _end(self, key: IncidentKey, reason: EndReason, now: Instant, joined: IncidentKey | None = None) -> None:
        it = self._incidents[key]
        if it.delivered is None and reason is not EndReason.ENDED and key not in self._sending:
            del self._incidents[key]  # the receiver never knew it, and need not know now
        else:
            self._incidents[key] = replace(it, ended=now.wall, reason=reason, joined=joined)

    def _kind(self, it: FindingIncident, now: Instant) -> EventKind | None:
        known = it.delivered
        if it.ended is not None:
            if known is not None:
                return EventKind.RESOLVE
            return EventKind.MISSED if it.reason is EndReason.ENDED else None
        if it.finding is None:  # of an earlier process, and not seen again yet
            return None
        if known is None:
            return EventKind.START
        if it.severity != known.severity or set(it.rules) - set(known.rules):
            return EventKind.UPDATE
        if self._settings.repeat and now.wall - known.at >= self._settings.repeat:
            return EventKind.REMINDER
        return None
