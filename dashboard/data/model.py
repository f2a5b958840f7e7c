"""What the page knows, typed: the exporter's answers, and what to say when there are none."""

from dataclasses import dataclass, field
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import Field

from ackscope.clock import Instant
from ackscope.findings import Finding, Inconclusive, Severity, Suppressed
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Alarm, HealthCheck, Node, Overview
from dashboard.format.readable import parse_iso


class PerCluster(Protocol):
    """A part of an answer that is about one cluster."""

    @property
    def cluster(self) -> str:
        """Its name."""
        ...


T = TypeVar("T")
C = TypeVar("C", bound=PerCluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFindings:
    """One cluster of `/api/v1/findings`.

    Attributes:
        broker: its version; None while unknown.
        age_seconds: age of the oldest answer of the broker that it rests on, when this was sent; None where there was
            none yet.
        overdue_seconds: for how long the one that is most behind its plan had been due; None from older exporters.
    """

    cluster: str
    broker: str | None = None
    age_seconds: float | None = None
    overdue_seconds: float | None = None
    findings: tuple[Finding, ...] = ()
    inconclusive: Annotated[tuple[Inconclusive, ...], Field(alias="cannot_tell")] = ()
    suppressed: Annotated[tuple[Suppressed, ...], Field(alias="set_aside")] = ()
    checked: tuple[str, ...] = ()

    def number(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProcessStatus:
    """The process that runs the probes.

    Attributes:
        age_seconds: since it last reported; None where it never did.
    """

    up: bool
    restarts: int = 0
    age_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmLayer:
    """What one layer of the broker adds to a confirm.

    Attributes:
        seconds: None where it cannot be told.
        because: what it follows from, or why it cannot be told.
    """

    name: str
    seconds: float | None = None
    node: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProbes:
    """One cluster of `/api/v1/probes`."""

    cluster: str
    process: ProbeProcessStatus
    probes: tuple[ProbeOutcome, ...] = ()
    layers: tuple[ConfirmLayer, ...] = ()

    @property
    def down(self) -> bool:
        """The process ran and does not now; one that was never wanted is not down."""
        ran = bool(self.probes) or self.process.restarts > 0 or self.process.age_seconds is not None
        return ran and not self.process.up


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart(Generic[T]):
    """The part of `ackscope.snapshot.Part` that the page shows."""

    value: T | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster of `/api/v1/snapshot`: its totals and nodes; the long lists are left out."""

    cluster: str
    overview: SnapshotPart[Overview] = field(default_factory=SnapshotPart)
    nodes: SnapshotPart[tuple[Node, ...]] = field(default_factory=SnapshotPart)
    health: SnapshotPart[tuple[HealthCheck, ...]] = field(default_factory=SnapshotPart)
    ages: dict[str, float | None] = field(default_factory=dict)

    @property
    def alarms(self) -> tuple[Alarm, ...] | None:
        """Resource alarms in force, by nodes and health checks; None where neither could be asked."""
        if self.nodes.value is None and self.health.value is None:
            return None
        seen = {
            (node.name, resource)
            for node in self.nodes.value or ()
            for resource, alarm in (("memory", node.mem_alarm), ("disk", node.disk_free_alarm))
            if alarm
        }
        seen |= {(alarm.node, alarm.resource) for check in self.health.value or () for alarm in check.alarms}
        return tuple(Alarm(node=node, resource=resource) for node, resource in sorted(seen))


Point = tuple[float, float | None]
"""Seconds before the answer, and the value then; None ends a stretch of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualBand:
    """What is usual at this hour of the week.

    Attributes:
        value: what is held against it: that of the queues of applications.
        scope: `ackscope.baselines.HOUR_OF_WEEK` or `HOUR_OF_DAY`.
        values: hours that it was made of.
    """

    value: float
    low: float
    middle: float
    high: float
    scope: str
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """One figure and how it went lately.

    Attributes:
        unit: rate (a second), messages, bytes, or "".
        value: the latest; None where it is not known.
    """

    name: str
    unit: str
    value: float | None = None
    line: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VitalMetric(MetricSeries):
    """A vital sign of the cluster.

    Attributes:
        because: why what is usual is not known; None also where it never is.
    """

    usual: UsualBand | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSeries:
    """What a finding is about, and lines of it."""

    kind: str
    name: str
    vhost: str | None = None
    lines: tuple[MetricSeries, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVitals:
    """One cluster of `/api/v1/vitals`."""

    cluster: str
    age_seconds: float | None = None
    signs: tuple[VitalMetric, ...] = ()
    subjects: tuple[SubjectSeries, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterResponse(Generic[C]):
    """One document of the exporter.

    Attributes:
        now: ISO 8601, the exporter's own clock when it answered.
    """

    now: str
    clusters: tuple[C, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Data that is not to be had at present.

    Attributes:
        reason: why, in one sentence.
        since: the first failure after the last success.
    """

    reason: str
    since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled(Generic[C]):
    """The last good answer of one source, and what happened since.

    Attributes:
        answer: None until a first answer came.
        at: when the last good answer was complete.
        away: None while the latest attempt succeeded.
    """

    answer: ExporterResponse[C] | None = None
    at: Instant | None = None
    away: Outage | None = None

    def of(self, cluster: str | None) -> C | None:
        """What the last good answer says of a cluster; None where it says nothing of it, or there was none."""
        known = self.answer.clusters if self.answer else ()
        return next((item for item in known if item.cluster == cluster), None)

    def aged(self, age_seconds: float | None, now: Instant) -> float | None:
        """An age that the answer gave, as of `now`."""
        return None if age_seconds is None or self.at is None else age_seconds + now.since(self.at)

    def present(self, now: Instant) -> float:
        """The wall clock of the exporter at `now`, seconds since 1970: its machine's clock may differ from ours."""
        theirs = parse_iso(self.answer.now) if self.answer else None
        return now.wall if theirs is None or self.at is None else theirs + now.since(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterState:
    """All that the exporter says."""

    url: str
    findings: Polled[ClusterFindings] = field(default_factory=Polled)
    probes: Polled[ClusterProbes] = field(default_factory=Polled)
    snapshot: Polled[ClusterSnapshot] = field(default_factory=Polled)
    vitals: Polled[ClusterVitals] = field(default_factory=Polled)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters that the exporter knows, in its order."""
        return tuple(item.cluster for item in self.findings.answer.clusters) if self.findings.answer else ()
