"""What diagnosis found, as data: facts, evidence and identifiers, never sentences.

The text of a finding is rendered from the catalogue page of its rule (`diagnosis/text.py`), once, where it is shown;
`ackscope/reports.py` has its shape.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Fact = str | int | float | bool | None | Sequence["Fact"] | Mapping[str, "Fact"]
"""A value that JSON has."""

Facts = Mapping[str, Fact]
"""Facts by name; it ends with the unit where there is one: `held_seconds`, `free_bytes`, `publish_rate` (a second)."""


class Severity(StrEnum):
    """How soon a person should act."""

    CRITICAL = "critical"
    """Messages are being lost or stopped now."""
    WARNING = "warning"
    """They will be, or something is slow."""
    INFO = "info"
    """A risk, or a fact that explains another finding."""

    @property
    def urgency(self) -> int:
        """0 for the most urgent, and on from there."""
        return list(Severity).index(self)


class Impact(StrEnum):
    """What a cause does to messages while it lasts; findings are ranked in this order."""

    LOSS = "loss"
    OUTAGE = "outage"
    SLOWDOWN = "slowdown"
    RISK = "risk"

    @property
    def rank(self) -> int:
        """0 for the worst, and on from there."""
        return list(Impact).index(self)


class Certainty(StrEnum):
    """How well the evidence supports the cause."""

    CERTAIN = "certain"
    """The broker says so, or its counters allow nothing else."""
    LIKELY = "likely"
    """The most likely explanation; the runbook lists what else looks like it."""
    EARLY = "early"
    """Seen too briefly to tell from something harmless; a longer duration makes it a warning."""


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
    """What the finding is about.

    Attributes:
        kind: cluster, node, queue, connection, channel, consumer, exchange, vhost, link (shovel or federation), probe.
    """

    kind: str
    name: str
    vhost: str | None = None
    node: str | None = None

    def __str__(self) -> str:
        """The subject as a person would name it."""
        place = f" in vhost {self.vhost!r}" if self.vhost is not None else ""
        return f"{self.kind} {self.name!r}{place}"


@dataclass(frozen=True, slots=True)
class FieldRef:
    """Where a value was read.

    Attributes:
        path: of the management API (`/api/queues`), or a probe (`probe handshake`).
        field: in its answer (`message_stats.ack`), or a step of the probe; "" for the whole answer.
    """

    path: str
    field: str = ""


Source = tuple[FieldRef, ...]


def source(path: str, *names: str) -> Source:
    """Where a value was read: some fields of one answer. Sources of several answers are added with `+`."""
    return tuple(FieldRef(path, name) for name in names) or (FieldRef(path),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation.

    Attributes:
        key: entry `evidence` of the rule's catalogue page, which has the label, and what would be expected.
        value: what was seen; None where the page makes the value of `facts`.
        unit: of a number.
        source: where it was read.
        facts: what else its label, its value and its expectation name: a consumer, a limit.
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
    """

    queues: tuple[QueueRef, ...] = ()
    exchanges: tuple[ExchangeRef, ...] = ()
    channels: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause. The rule names are stable: metrics, alerts, runbooks and links hold on to them.

    Attributes:
        since: ISO 8601, UTC: since when the evidence is seen; None where that cannot be known.
        facts: what the templates of the rule's catalogue page name.
        impact: of its rule, or RISK for information; the engine sets it.
        seen_seconds: how long the evidence has been seen; None where one look is enough to know.
        last_seen: ISO 8601, UTC: when the evidence was seen last; a finding stays for a short while after that, so
            that it does not flap. The engine sets it.
        consequences: what follows from this cause, and would be a finding of its own without it; ranked.
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
    seen_seconds: float | None = None
    last_seen: str | None = None
    consequences: tuple["Finding", ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells findings apart: rule and subject."""
        return (self.rule, self.subject.kind, self.subject.vhost or "", self.subject.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """A rule that could not be judged, and what it lacks.

    Attributes:
        reason: entry `inconclusive` of the rule's catalogue page, or of the shared texts.
        facts: what that text names.
        permanent: this broker or version never gives the signal; nothing that a person does now changes it.
    """

    rule: str
    reason: str
    facts: Facts = field(default_factory=dict)
    permanent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """Something that looks like a fault and is none, and why: a queue without consumers that is a dead-letter store.

    Attributes:
        rule: what it looks like.
        reason: entry `suppressed` of the rule's catalogue page, or of the shared texts.
        facts: what that text names.
    """

    rule: str
    subject: Subject
    reason: str
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisResult:
    """All that diagnosis has to say of one cluster at one moment.

    Attributes:
        findings: ranked, worst first; one a cause, with what follows from it inside.
        suppressed: what was looked at and left alone, by rule and subject.
        checked: every rule that was asked, also those that found nothing.
    """

    cluster: str
    at: str
    findings: tuple[Finding, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    checked: tuple[str, ...] = ()


def exit_code(results: Sequence[DiagnosisResult]) -> int:
    """The exit code of `ackscope diagnose`: 0 nothing, 1 warning, 2 critical, 3 could not tell.

    With no finding, one rule that was inconclusive and need not be is enough for 3: a blind eye is not
    a clean bill of health. What a version never exposes does not count.
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
    """Every finding, and every one that hangs under it."""
    return [each for finding in findings for each in (finding, *flat(finding.consequences))]
