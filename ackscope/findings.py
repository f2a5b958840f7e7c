"""Findings of the diagnosis as data: facts, evidence and identifiers, never sentences.

`diagnosis/text.py` renders the text of a finding from the catalogue page of its rule; `ackscope/reports.py` defines the
result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ackscope.clock import Instant

Fact = str | int | float | bool | None | Sequence["Fact"] | Mapping[str, "Fact"]
"""A value that JSON can represent."""

Facts = Mapping[str, Fact]
"""Facts by name. A name ends with the unit, if any: `held_seconds`, `free_bytes`, `publish_rate` (per second)."""


class Severity(StrEnum):
    """How soon a person should act."""

    CRITICAL = "critical"
    """Messages are being lost or stopped now."""
    WARNING = "warning"
    """Messages will be lost or stopped, or something is slow."""
    INFO = "info"
    """A risk, or a fact that explains another finding."""

    @property
    def urgency(self) -> int:
        """0 for the most urgent severity; higher numbers are less urgent."""
        return list(Severity).index(self)


class Impact(StrEnum):
    """What a cause does to messages while it lasts; findings are ranked in this order."""

    LOSS = "loss"
    OUTAGE = "outage"
    SLOWDOWN = "slowdown"
    RISK = "risk"

    @property
    def rank(self) -> int:
        """0 for the worst impact; higher numbers are less severe."""
        return list(Impact).index(self)


class Certainty(StrEnum):
    """How well the evidence supports the cause."""

    CERTAIN = "certain"
    """The broker reports the cause, or its counters have no other explanation."""
    LIKELY = "likely"
    """The most likely explanation; the runbook lists others with the same evidence."""
    EARLY = "early"
    """The evidence is too recent to exclude a harmless cause; if it lasts, the finding becomes a warning."""


class Unit(StrEnum):
    """The unit of a number in evidence."""

    NONE = ""
    SECONDS = "seconds"
    BYTES = "bytes"
    MESSAGES = "messages"
    PER_SECOND = "per second"
    SHARE = "share"
    """0 to 1, shown in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that a finding is about.

    Attributes:
        kind: cluster, node, queue, connection, channel, consumer, exchange, vhost, policy, link (shovel or
            federation), probe.
    """

    kind: str
    name: str
    vhost: str | None = None
    node: str | None = None

    def __str__(self) -> str:
        """The subject in words, such as `queue 'orders' in vhost '/'`."""
        place = f" in vhost {self.vhost!r}" if self.vhost is not None and self.kind != "vhost" else ""
        return f"{self.kind} {self.name!r}{place}"


@dataclass(frozen=True, slots=True)
class FieldRef:
    """The source of a value.

    Attributes:
        path: path of the management API (`/api/queues`) or of a Prometheus endpoint (`/metrics/detailed`), or a probe
            (`probe handshake`).
        field: field of the response (`message_stats.ack`), metric, or step of the probe; "" for the whole response.
    """

    path: str
    field: str = ""


Source = tuple[FieldRef, ...]


def source(path: str, *names: str) -> Source:
    """The source of a value: one path and some fields. Sources with several paths are added with `+`."""
    return tuple(FieldRef(path, name) for name in names) or (FieldRef(path),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation.

    Attributes:
        key: entry `evidence` of the rule's catalogue page, which has the label and the expected value.
        value: the observed value; None if the page makes it from `facts`.
        unit: unit of a number.
        source: where it was read.
        facts: other facts that the templates of the page name, such as a consumer or a limit.
    """

    key: str
    value: str | float | None = None
    unit: Unit = Unit.NONE
    source: Source
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueRef:
    """A queue by its identifiers."""

    vhost: str
    name: str


@dataclass(frozen=True, slots=True)
class ExchangeRef:
    """An exchange by its identifiers."""

    vhost: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Involved:
    """Objects that a finding is about or that explain it, by their identifiers.

    Attributes:
        clients: names that applications give their connections.
        one_of: connections that may be the client, if the broker does not report which one is. At least one of them is.
            They are not among `connections`.
    """

    queues: tuple[QueueRef, ...] = ()
    exchanges: tuple[ExchangeRef, ...] = ()
    channels: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


FindingKey = tuple[str, str, str, str]
"""The identity of a finding: rule, and kind, vhost ("" if none) and name of its subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause. Rule names are stable, because metrics, alerts, runbooks and links use them.

    Attributes:
        since: start of the evidence, ISO 8601, UTC; None if it cannot be known.
        facts: the facts that the templates of the rule's catalogue page name.
        impact: impact of the rule, or RISK for information; the engine sets it.
        own_impact: the impact of this finding, where it differs from that of its rule; None if it is the same.
        seen_seconds: how long the evidence has been seen; None if one observation is sufficient.
        accounted: messages of the subject that left it by this cause before any delivery; None if the rule counts
            none. The law of the ledger (`unexplained-loss`) does not report them again.
        last_seen: when the evidence was seen last, ISO 8601, UTC; the engine sets it. A finding stays for a short time
            after that, so that it does not flap.
        over_since: when what it reports ended, ISO 8601, UTC; None while it goes on or may. As information, such a
            finding stays for some minutes (`diagnosis/aftermath.py`).
        if_it_lasts: the severity that it gets if the evidence lasts; None if unknown, or if it will not rise. Only the
            diagnosis of a short observation sets it (`diagnosis/brief.py`).
        consequences: findings that this cause explains, ranked; without it they would be listed separately.
    """

    rule: str
    severity: Severity
    subject: Subject
    since: str | None = None
    facts: Facts = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    involved: Involved = field(default_factory=Involved)
    certainty: Certainty = Certainty.LIKELY
    impact: Impact = Impact.RISK
    own_impact: Impact | None = None
    seen_seconds: float | None = None
    accounted: int | None = None
    last_seen: str | None = None
    over_since: str | None = None
    if_it_lasts: Severity | None = None
    consequences: tuple["Finding", ...] = ()

    @property
    def key(self) -> FindingKey:
        """The identity of a finding: rule and subject."""
        return (self.rule, self.subject.kind, self.subject.vhost or "", self.subject.name)

    @property
    def is_over(self) -> bool:
        """Whether it is only kept as information about what has ended."""
        return self.over_since is not None and self.severity is Severity.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """A rule that could not be evaluated, and the reason.

    Attributes:
        reason: entry `inconclusive` of the rule's catalogue page, or of the shared texts.
        facts: facts that this text names.
        permanent: a property of the setup, such as the version or the heartbeats of clients, not a failure: it has no
            effect on the exit code. The catalogue has the reason, and what can be done.
    """

    rule: str
    reason: str
    facts: Facts = field(default_factory=dict)
    permanent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """Something that looks like a fault but is none, such as a dead-letter queue without consumers.

    Attributes:
        rule: the rule that would have reported it.
        reason: entry `suppressed` of the rule's catalogue page, or of the shared texts.
        facts: facts that this text names.
    """

    rule: str
    subject: Subject
    reason: str
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisResult:
    """The result of diagnosing one cluster at one moment.

    Attributes:
        findings: ranked, worst first; one per cause, which contains its consequences.
        suppressed: by rule and subject.
        checked: all rules that ran, including those that found nothing.
        moment: the same moment as `at` on both clocks; None in what was recorded.
    """

    cluster: str
    at: str
    findings: tuple[Finding, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    checked: tuple[str, ...] = ()
    moment: Instant | None = field(default=None, compare=False)


def exit_code(results: Sequence[DiagnosisResult]) -> int:
    """The exit code of `ackscope diagnose`: 2 critical, 1 warning, 3 could not look or judge, 0 else.

    Without a warning or critical finding, one inconclusive rule is enough for 3: it may hide a fault. Permanently
    inconclusive rules do not count.
    """
    severities = {finding.severity for result in results for finding in result.findings}
    if Severity.CRITICAL in severities:
        return 2
    if Severity.WARNING in severities:
        return 1
    blind = any(not each.permanent for result in results for each in result.inconclusive)
    checked = bool(results) and all(result.checked for result in results)
    return 3 if blind or not checked else 0


def flat(findings: Sequence[Finding]) -> list[Finding]:
    """All findings, each followed by its consequences at all depths."""
    return [each for finding in findings for each in (finding, *flat(finding.consequences))]
