"""What is wrong: a named cause with its evidence, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation.

    Attributes:
        value: with its unit, as a person would write it.
        expected: what it would be were nothing wrong; "" where there is no such value.
        source: where it was seen: an API path and field, or a probe.
    """

    what: str
    value: str
    source: str
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause. The rule names are stable: metrics, alerts, runbooks and links hold on to them.

    Attributes:
        since: ISO 8601, UTC: since when the evidence is seen; None where that cannot be told.
        summary: one sentence: who suffers, and how.
        cause: one sentence: why.
        next_steps: commands or acts, the first one first.
        runbook: path of the page in this repository.
        last_seen: ISO 8601, UTC: when the evidence was there last; a finding stays for a short while after that, so
            that it does not flap. None until diagnosis as a whole has looked at it.
        consequences: what follows from this cause, and would be a finding of its own without it; ranked.
    """

    rule: str
    severity: Severity
    subject: Subject
    since: str | None
    summary: str
    cause: str
    evidence: tuple[Evidence, ...]
    next_steps: tuple[str, ...]
    runbook: str
    last_seen: str | None = None
    consequences: tuple["Finding", ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells findings apart: rule and subject."""
        return (self.rule, self.subject.kind, self.subject.vhost or "", self.subject.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """A rule that had no answer, and what it lacks.

    Attributes:
        because: what is missing, in plain words.
        needs: what to do to make it answer.
        permanent: this broker or version never gives the signal; nothing that a person does now changes it.
    """

    rule: str
    because: str
    needs: str
    permanent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """Something that looks like a fault and is none, and why: a queue without consumers that is a dead-letter store.

    Attributes:
        rule: what it looks like.
        because: why it is left alone, in plain words.
    """

    rule: str
    subject: Subject
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisResult:
    """All that diagnosis has to say of one cluster at one moment.

    Attributes:
        findings: ranked, worst first; one a cause, with what follows from it inside.
        set_aside: what was looked at and left alone, by rule and subject.
        checked: every rule that was asked, also those that found nothing.
    """

    cluster: str
    at: str
    findings: tuple[Finding, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    checked: tuple[str, ...] = ()


def runbook(rule: str) -> str:
    """The path of a rule's runbook in this repository."""
    return f"docs/runbooks/{rule}.md"


def exit_code(verdicts: Sequence[DiagnosisResult]) -> int:
    """The exit code of `ackscope diagnose`: 0 nothing, 1 warning, 2 critical, 3 could not tell.

    With no finding, one rule that could not answer and could have is enough for 3: a blind eye is not
    a clean bill of health. What a version never tells does not count.
    """
    severities = {finding.severity for verdict in verdicts for finding in verdict.findings}
    if Severity.CRITICAL in severities:
        return 2
    if Severity.WARNING in severities:
        return 1
    blind = any(not gap.permanent for verdict in verdicts for gap in verdict.inconclusive)
    checked = bool(verdicts) and all(verdict.checked for verdict in verdicts)
    return 3 if blind or not checked else 0


def as_dict(finding: Finding) -> dict[str, Any]:
    """The finding in the shape of the contract (JSON)."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "subject": subject_dict(finding.subject),
        "since": finding.since,
        "summary": finding.summary,
        "cause": finding.cause,
        "evidence": [
            {"what": item.what, "value": item.value, "expected": item.expected, "source": item.source}
            for item in finding.evidence
        ],
        "next_steps": list(finding.next_steps),
        "runbook": finding.runbook,
        "last_seen": finding.last_seen,
        "consequences": [as_dict(other) for other in finding.consequences],
    }


def flat(findings: Sequence[Finding]) -> list[Finding]:
    """Every finding, and every one that hangs under it."""
    return [each for finding in findings for each in (finding, *flat(finding.consequences))]


def subject_dict(subject: Subject) -> dict[str, str | None]:
    """The subject in the shape of the contract (JSON)."""
    return {"kind": subject.kind, "vhost": subject.vhost, "name": subject.name, "node": subject.node}
