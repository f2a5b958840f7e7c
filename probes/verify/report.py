"""The report of claims, as text and JSON."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from probes.verify.run import ClaimRow
from probes.verify.verify_claim import ClaimVerdict

_WIDTH = 80
_INDENT = "     "

GROUPS = {
    "delivery": "Delivery and acknowledgement",
    "prefetch": "Prefetch",
    "confirms": "Publisher confirms",
    "transactions": "Transactions",
    "order": "Order, exclusivity, reliability",
    "amqp10": "AMQP 1.0",
}
"""Groups of claims and their headings, in the order of the report."""

WORDS = {
    ClaimVerdict.HOLDS: "holds",
    ClaimVerdict.DIFFERS: "differs",
    ClaimVerdict.NOT_APPLICABLE: "not applicable",
    ClaimVerdict.NEEDS_LAB: "needs --lab",
    ClaimVerdict.INCONCLUSIVE: "could not tell",
}
"""Verdicts as text."""


def document(broker: str, rows: Sequence[ClaimRow]) -> dict[str, Any]:
    """Return the JSON document of `ackscope verify --json`."""
    return {
        "broker": broker,
        "rows": [
            {
                "id": row.claim.id,
                "name": row.claim.name,
                "group": row.claim.group,
                "verdict": row.result.verdict.value,
                "documented": row.claim.documented,
                "source": row.claim.source,
                "observed": row.result.observed,
                "because": row.result.because,
                "evidence": list(row.result.evidence),
                "seconds": round(row.seconds, 3),
            }
            for row in rows
        ],
    }


def text(broker: str, where: str, rows: Sequence[ClaimRow], *, evidence: bool = False) -> str:
    """Return the report for a terminal, at most 80 columns wide.

    Args:
        broker: product and version, such as "RabbitMQ 4.3.6".
        where: host and port.
        rows: results in the order of the claims.
        evidence: whether to add the evidence of each row.
    """
    lines = [f"{broker} at {where}"]
    for group, heading in GROUPS.items():
        of_group = [row for row in rows if row.claim.group == group]
        if of_group:
            lines += ["", heading]
        for row in of_group:
            lines += _row(row, evidence=evidence)
    return "\n".join([*lines, "", counts(rows)])


def counts(rows: Sequence[ClaimRow]) -> str:
    """Return the number of rows for each verdict, in one line."""
    found = Counter(row.result.verdict for row in rows)
    counts = [f"{words} {found[verdict]}" for verdict, words in WORDS.items() if found[verdict]]
    open_ = sum(not row.settled for row in rows)
    return f"{len(rows)} claims: {', '.join(counts)}" + (f"; {open_} unexplained" if open_ else "")


def exit_code(rows: Sequence[ClaimRow]) -> int:
    """Return 0 if every row is settled, else 1."""
    return 0 if all(row.settled for row in rows) else 1


def _row(row: ClaimRow, *, evidence: bool) -> list[str]:
    verdict = WORDS[row.result.verdict]
    head = f"{row.claim.id}  {row.claim.name}"
    lines = [f"{head}{verdict:>{_WIDTH - len(head)}}", *_wrapped(_sentence(row.result.observed))]
    if row.result.because:
        lines += _wrapped(f"Why: {_sentence(row.result.because)}")
    if evidence:
        lines += [line for item in row.result.evidence for line in _wrapped(f"- {item}", "  ")]
    return lines


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."


def _wrapped(words: str, hanging: str = "") -> list[str]:
    return textwrap.wrap(words, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT + hanging)
