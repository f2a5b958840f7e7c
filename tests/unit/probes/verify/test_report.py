import pytest

from probes.verify.report import counts, document, exit_code, text
from probes.verify.run import ClaimRow
from probes.verify.verify_claim import ClaimVerdict, Observed

LONG = "a sentence that goes on and on " * 6


def row(claim, verdict=ClaimVerdict.HOLDS, because="", *, broken=False):
    """A checked claim."""
    result = Observed(verdict=verdict, observed=LONG, evidence=(LONG, "2 of 2"), because=because)
    return ClaimRow(claim, result, 1.23456, broken)


def test_the_table_fits_a_terminal_and_says_verdicts_in_words(claim):
    """It has 80 columns, a heading per group, the observation under each claim, and the reason if there is one."""
    rows = [
        row(claim("S01")),
        row(claim("S16", group="prefetch"), ClaimVerdict.DIFFERS, "since 4.3 it does not"),
        row(claim("S22", group="confirms"), ClaimVerdict.INCONCLUSIVE),
    ]
    shown = text("RabbitMQ 4.3.6", "127.0.0.1:5672", rows)
    lines = shown.splitlines()

    assert "RabbitMQ 4.3.6 at 127.0.0.1:5672" == lines[0]
    assert 80 == max(map(len, lines))
    for heading in ("Delivery and acknowledgement", "Prefetch", "Publisher confirms"):
        assert heading in lines
    assert any(line.startswith("S16  claim-S16") and line.endswith("  differs") for line in lines)
    assert "     Why: Since 4.3 it does not." in lines
    assert "2 of 2" not in shown
    assert "3 claims: holds 1, differs 1, could not tell 1; 1 unexplained" == lines[-1]


def test_evidence_is_shown_when_asked_for(claim):
    """Line by line, wrapped as well."""
    shown = text("RabbitMQ 4.3.6", "127.0.0.1:5672", [row(claim())], evidence=True)

    assert "     - 2 of 2" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_document_keeps_its_contract(claim):
    """Scripts read these keys."""
    (only,) = document("RabbitMQ 4.3.6", [row(claim(), ClaimVerdict.DIFFERS, "a fact")])["rows"]

    assert {
        "id",
        "name",
        "group",
        "verdict",
        "documented",
        "source",
        "observed",
        "because",
        "evidence",
        "seconds",
    } == set(only)
    assert ("S01", "differs", [LONG, "2 of 2"], 1.235) == (
        only["id"],
        only["verdict"],
        only["evidence"],
        only["seconds"],
    )


@pytest.mark.parametrize(
    ("verdict", "because", "broken", "code"),
    [
        (ClaimVerdict.HOLDS, "", False, 0),
        (ClaimVerdict.NOT_APPLICABLE, "", False, 0),
        (ClaimVerdict.NEEDS_LAB, "", False, 0),
        (ClaimVerdict.DIFFERS, "a cited fact", False, 0),
        (ClaimVerdict.DIFFERS, "", False, 1),
        (ClaimVerdict.INCONCLUSIVE, "a cited fact", False, 0),
        (ClaimVerdict.INCONCLUSIVE, "", False, 1),
        (ClaimVerdict.HOLDS, "", True, 1),
    ],
)
def test_only_what_nobody_explains_is_exit_code_1(claim, verdict, because, broken, code):
    """A difference with a cited reason is known; a broken check never passes."""
    assert code == exit_code([row(claim()), row(claim("S02"), verdict, because, broken=broken)])


def test_counts_leave_out_what_there_is_none_of(claim):
    """The counts are one line."""
    assert "2 claims: holds 2" == counts([row(claim()), row(claim("S02"))])
