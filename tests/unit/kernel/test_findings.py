"""Findings and the exit code of a verdict."""

import pytest

from ackscope.findings import (
    DiagnosisResult,
    Evidence,
    Finding,
    Inconclusive,
    Severity,
    Subject,
    as_dict,
    exit_code,
    runbook,
)


def _finding(severity: Severity) -> Finding:
    return Finding(
        rule="no-consumer",
        severity=severity,
        subject=Subject(kind="queue", vhost="/", name="orders"),
        since=None,
        summary="Nobody reads.",
        cause="The consumer is gone.",
        evidence=(Evidence(what="consumers", value="0", expected="1", source="/api/queues"),),
        next_steps=("rabbitmqctl list_consumers",),
        runbook=runbook("no-consumer"),
    )


def _verdict(*severities: Severity, blind: bool = False, permanent: bool = False) -> DiagnosisResult:
    gap = Inconclusive(rule="stuck-consumer", because="no queue is visible", needs="permissions", permanent=permanent)
    return DiagnosisResult(
        cluster="shop",
        at="2026-01-01T00:00:00Z",
        findings=tuple(_finding(severity) for severity in severities),
        inconclusive=(gap,) if blind else (),
        checked=("no-consumer", "stuck-consumer"),
    )


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
    """Names of keys are held on to by others."""
    document = as_dict(_finding(Severity.WARNING))

    assert [
        "rule", "severity", "subject", "since", "summary", "cause", "evidence", "next_steps", "runbook",
        "last_seen", "consequences",
    ] == list(document)  # fmt: skip
    assert {"kind": "queue", "vhost": "/", "name": "orders", "node": None} == document["subject"]
    assert "docs/runbooks/no-consumer.md" == document["runbook"]
