"""Typed responses of the exporter, and their polling state. Field names or aliases are the keys of the JSON."""

from dataclasses import dataclass, field
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import Field

from ackscope.clock import Instant
from ackscope.findings import Severity
from ackscope.records import ProbeOutcome
from ackscope.reports import EndedReport, FindingReport, InconclusiveReport, SuppressedReport
from ackscope.snapshot import Alarm, HealthCheck, Node, Overview
from dashboard.format.readable import parse_iso


class PerCluster(Protocol):
    """A part of a response that belongs to one cluster."""

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        ...


T = TypeVar("T")
C = TypeVar("C", bound=PerCluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFindings:
    """One cluster of `/api/v1/findings`.

    Attributes:
        broker: version of the broker; None while unknown.
        age_seconds: age of the oldest broker data used, when the response was sent; None without data.
        overdue_seconds: how late the most overdue poll is; None from older exporters.
        ended: findings that ended in the last hour, the latest first; none from older exporters.
    """

    cluster: str
    broker: str | None = None
    age_seconds: float | None = None
    overdue_seconds: float | None = None
    findings: tuple[FindingReport, ...] = ()
    inconclusive: Annotated[tuple[InconclusiveReport, ...], Field(alias="cannot_tell")] = ()
    suppressed: Annotated[tuple[SuppressedReport, ...], Field(alias="set_aside")] = ()
    checked: tuple[str, ...] = ()
    ended: tuple[EndedReport, ...] = ()

    def number(self, severity: Severity) -> int:
        """Number of findings with this severity that are not muted."""
        return sum(finding.severity is severity and not finding.muted for finding in self.findings)

    @property
    def muted(self) -> int:
        """Number of muted findings."""
        return sum(finding.muted for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProcessStatus:
    """State of the process that runs the probes.

    Attributes:
        age_seconds: since its last report; None if it never reported.
    """

    up: bool
    restarts: int = 0
    age_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmLayer:
    """Share of one layer of the broker in the confirm latency.

    Attributes:
        seconds: None if it cannot be measured.
        because: what it is derived from, or why it cannot be measured.
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
        """Whether the process ran before and does not run now; one that is not configured is not down."""
        ran = bool(self.probes) or self.process.restarts > 0 or self.process.age_seconds is not None
        return ran and not self.process.up


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart(Generic[T]):
    """The fields of `ackscope.snapshot.Part` that the dashboard shows."""

    value: T | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster of `/api/v1/snapshot`: totals and nodes, without the long lists."""

    cluster: str
    overview: SnapshotPart[Overview] = field(default_factory=SnapshotPart)
    nodes: SnapshotPart[tuple[Node, ...]] = field(default_factory=SnapshotPart)
    health: SnapshotPart[tuple[HealthCheck, ...]] = field(default_factory=SnapshotPart)
    ages: dict[str, float | None] = field(default_factory=dict)

    @property
    def alarms(self) -> tuple[Alarm, ...] | None:
        """Active resource alarms, from nodes and health checks; None if neither is known."""
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
"""(seconds before the response, value); the value is None in a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualBand:
    """Baseline band of this hour of the week.

    Attributes:
        value: the value to compare with the band: the sum over the queues of applications.
        middle: median.
        scope: `ackscope.baselines.HOUR_OF_WEEK` or `HOUR_OF_DAY`.
        values: number of hours that the band was computed from.
    """

    value: float
    low: float
    middle: float
    high: float
    scope: str
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """A metric with its recent values.

    Attributes:
        unit: rate (per second), messages, bytes, or "".
        value: the latest value; None if it is not known.
        line: recent values, oldest first.
    """

    name: str
    unit: str
    value: float | None = None
    line: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VitalMetric(MetricSeries):
    """A vital metric of the cluster.

    Attributes:
        usual: baseline band; None if there is none.
        because: why there is no band; None also for metrics that never have one.
    """

    usual: UsualBand | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSeries:
    """The subject of a finding, and series of it."""

    kind: str
    name: str
    vhost: str | None = None
    lines: tuple[MetricSeries, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogTrend:
    """Messages of a queue now and `seconds` before."""

    vhost: str
    name: str
    before: int
    now: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVitals:
    """One cluster of `/api/v1/vitals`; `trends` are those of the queues of findings."""

    cluster: str
    age_seconds: float | None = None
    signs: tuple[VitalMetric, ...] = ()
    subjects: tuple[SubjectSeries, ...] = ()
    trends: tuple[BacklogTrend, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterResponse(Generic[C]):
    """One JSON document of the exporter.

    Attributes:
        now: ISO 8601, the exporter's clock when it sent the document.
        triage_writable: whether findings can be acknowledged and muted; only in the document of findings.
    """

    now: str
    clusters: tuple[C, ...]
    triage_writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A period in which an endpoint cannot be read.

    Attributes:
        reason: one sentence.
        since: the first failure after the last success.
    """

    reason: str
    since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled(Generic[C]):
    """Polling state of one endpoint: the last good response, and the outage since then.

    Attributes:
        response: None before the first response.
        received: when the last good response was complete.
        outage: None while the latest attempt succeeded.
    """

    response: ExporterResponse[C] | None = None
    received: Instant | None = None
    outage: Outage | None = None

    def of(self, cluster: str | None) -> C | None:
        """The part of the last good response about a cluster; None if there is none."""
        known = self.response.clusters if self.response else ()
        return next((item for item in known if item.cluster == cluster), None)

    def age_at(self, age_seconds: float | None, now: Instant) -> float | None:
        """An age from the response, extrapolated to `now`."""
        return None if age_seconds is None or self.received is None else age_seconds + now.since(self.received)

    def exporter_time(self, now: Instant) -> float:
        """The exporter's wall clock at `now`, seconds since 1970; it may differ from the clock of this machine."""
        theirs = parse_iso(self.response.now) if self.response else None
        return now.wall if theirs is None or self.received is None else theirs + now.since(self.received)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterState:
    """Polling state of all endpoints of the exporter."""

    url: str
    findings: Polled[ClusterFindings] = field(default_factory=Polled)
    probes: Polled[ClusterProbes] = field(default_factory=Polled)
    snapshot: Polled[ClusterSnapshot] = field(default_factory=Polled)
    vitals: Polled[ClusterVitals] = field(default_factory=Polled)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the exporter's clusters, in its order."""
        return tuple(item.cluster for item in self.findings.response.clusters) if self.findings.response else ()
