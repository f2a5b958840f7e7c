"""Findings as text for people and other programs: the JSON of `/api/v1/findings`, `diagnose --json` and bundles.

`diagnosis/text.py` makes them from data (`ackscope/findings.py`) and the catalogue. The fields are a contract: they may
be added, never renamed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ackscope.findings import Certainty, FieldRef, FindingKey, Impact, Involved, Severity, Subject, Unit
from ackscope.triage import Triage


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step to fix a cause.

    Attributes:
        text: the action, in the imperative.
        command: complete shell command; None if the step has none.
    """

    text: str
    command: str | None = None

    @property
    def lead(self) -> str:
        """The text, with a colon if a command follows."""
        return f"{self.text}:" if self.command and self.text[-1:] not in ".?!:" else self.text

    def __str__(self) -> str:
        """Text and command in one line."""
        return f"{self.lead} {self.command}" if self.command else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport:
    """One observation as text.

    Attributes:
        value: the observed value, with its unit.
        expected: the value of a healthy system; "" if there is none.
        source: where it was read, as text.
        key: stable name of the observation within its rule.
        amount: the value as a number, in `unit`; None for text.
        fields: where it was read.
    """

    what: str
    value: str
    source: str
    expected: str = ""
    key: str = ""
    amount: float | None = None
    unit: Unit = Unit.NONE
    fields: tuple[FieldRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReport:
    """One cause as text, with the data that the text was made from.

    Attributes:
        summary: one sentence: what is affected, and how.
        cause: one or more sentences: why.
        next_steps: `steps` as one line each.
        runbook: path of the catalogue page in this repository.
        triage: what people say about the finding; None if nobody said anything, or where no exporter stores it.

    Other attributes: `ackscope.findings.Finding`.
    """

    rule: str
    severity: Severity
    subject: Subject
    since: str | None
    summary: str
    cause: str
    evidence: tuple[EvidenceReport, ...]
    next_steps: tuple[str, ...]
    runbook: str
    last_seen: str | None = None
    over_since: str | None = None
    consequences: tuple["FindingReport", ...] = ()
    steps: tuple[Step, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    involved: Involved = field(default_factory=Involved)
    impact: Impact = Impact.RISK
    certainty: Certainty = Certainty.LIKELY
    seen_seconds: float | None = None
    if_it_lasts: Severity | None = None
    triage: Triage | None = None

    @property
    def key(self) -> FindingKey:
        """The identity of a finding: rule and subject."""
        return (self.rule, self.subject.kind, self.subject.vhost or "", self.subject.name)

    @property
    def muted(self) -> bool:
        """Whether somebody muted the finding, and that applies now."""
        return self.triage is not None and self.triage.muted


@dataclass(frozen=True, slots=True, kw_only=True)
class InconclusiveReport:
    """A rule that could not be evaluated, as text.

    Attributes:
        because: what is missing.
        needs: what to do so that the rule can be evaluated.
        permanent: a property of the setup, not a failure (`ackscope.findings.Inconclusive`).
        reason: stable name of the reason.
    """

    rule: str
    because: str
    needs: str
    permanent: bool = False
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedReport:
    """Something that looks like a fault but is none, as text.

    Attributes:
        because: why it is not reported.
        reason: stable name of the reason.
    """

    rule: str
    subject: Subject
    because: str
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedReport:
    """A finding that ended recently, without the text of the time when it was present.

    Attributes:
        severity: as it was last.
        ended_at: first diagnosis without it, ISO 8601, UTC.
        ended_seconds: seconds since then, when the document was made.
        runbook: path of the catalogue page in this repository.
    """

    rule: str
    severity: Severity
    subject: Subject
    since: str | None
    ended_at: str
    ended_seconds: float
    runbook: str


def is_over(finding: Mapping[str, Any]) -> bool:
    """Whether a finding of the JSON documents is kept only as information about what has ended (`Finding.is_over`)."""
    return finding["severity"] == Severity.INFO and finding.get("over_since") is not None


def runbook(rule: str) -> str:
    """The path of a rule's catalogue page in this repository; the page is its runbook."""
    return f"diagnosis/catalogue/{rule}.md"


def runbook_command(rule: str) -> str:
    """The command that prints the runbook of a rule, wherever ackscope is installed."""
    return f"ackscope runbook {rule}"


def flat_reports(findings: Sequence[FindingReport]) -> list[FindingReport]:
    """All findings, each followed by its consequences at all depths."""
    return [each for finding in findings for each in (finding, *flat_reports(finding.consequences))]


def as_document(report: FindingReport | InconclusiveReport | SuppressedReport) -> dict[str, Any]:
    """A report as a JSON document: its attributes by name."""
    return asdict(report)
