"""Findings and the exit code of a verdict."""

import pytest

from ackscope.findings import DiagnosisResult, Finding, Inconclusive, Severity, Subject, exit_code
from ackscope.reports import EvidenceReport, FindingReport, Step, as_document, runbook

ORDERS = Subject(kind="queue", vhost="/", name="orders")


def _finding(severity: Severity) -> Finding:
    return Finding(rule="no-consumer", severity=severity, subject=ORDERS)


def _verdict(*severities: Severity, blind: bool = False, permanent: bool = False) -> DiagnosisResult:
    gap = Inconclusive(rule="stuck-consumer", reason="hidden_queues", permanent=permanent)
    return DiagnosisResult(
        cluster="shop",
        at="2026-01-01T00:00:00Z",
        findings=tuple(_finding(severity) for severity in severities),
        inconclusive=(gap,) if blind else (),
        checked=("no-consumer", "stuck-consumer"),
    )


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (ORDERS, "queue 'orders' in vhost '/'"),
        (Subject(kind="vhost", vhost="shop", name="shop"), "vhost 'shop'"),
        (Subject(kind="node", name="rabbit@one"), "node 'rabbit@one'"),
    ],
)
def test_a_subject_names_its_vhost_once(subject: Subject, words: str) -> None:
    """A virtual host is not in itself."""
    assert words == str(subject)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([_verdict()], 0),
        ([_verdict(Severity.INFO)], 0),
        ([_verdict(Severity.WARNING)], 1),
        ([_verdict(Severity.WARNING), _verdict(Severity.CRITICAL)], 2),
        ([_verdict(Severity.WARNING, blind=True)], 1),
        ([_verdict(blind=True)], 3),
        ([_verdict(blind=True, permanent=True)], 0),
        ([], 3),
    ],
)
def test_exit_codes(verdicts: list[DiagnosisResult], code: int) -> None:
    """The worst finding decides; nothing found with a blind eye is "could not tell"."""
    assert code == exit_code(verdicts)


def test_the_json_of_a_finding_is_the_contract() -> None:
    """Other programs rely on the names of keys; the first ones have always been there."""
    report = FindingReport(
        rule="no-consumer",
        severity=Severity.WARNING,
        subject=ORDERS,
        since=None,
        summary="Queue 'orders' has no consumer.",
        cause="The consumer disconnected.",
        evidence=(EvidenceReport(what="consumers", value="0", expected="1", source="/api/queues consumers"),),
        next_steps=("List them: rabbitmqctl list_consumers",),
        steps=(Step(text="List them", command="rabbitmqctl list_consumers"),),
        runbook=runbook("no-consumer"),
    )
    document = as_document(report)

    assert [
        "rule", "severity", "subject", "since", "summary", "cause", "evidence", "next_steps", "runbook",
        "last_seen", "over_since", "consequences", "steps", "facts", "involved", "impact", "certainty", "seen_seconds",
        "if_it_lasts", "triage",
    ] == list(document)  # fmt: skip
    assert {"kind": "queue", "vhost": "/", "name": "orders", "node": None} == document["subject"]
    assert "diagnosis/catalogue/no-consumer.md" == document["runbook"]
    assert ["what", "value", "source", "expected", "key", "amount", "unit", "fields"] == list(document["evidence"][0])
    assert list(document["next_steps"]) == [str(step) for step in report.steps]
