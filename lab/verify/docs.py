"""Makes docs/semantics.md: `python -m lab.verify.docs tests/fixtures/verify > docs/semantics.md`."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.verify.report import GROUPS, WORDS
from probes.verify.sources import (
    AMQP10,
    CONFIRMS,
    DEAD_LETTERS,
    FLOW,
    MODIFIED,
    OASIS,
    QUORUM,
    RELIABILITY,
    SEMANTICS,
    TRANSLATION,
)
from probes.verify.verify_claim import ClaimVerdict

HEADER = """# Semantics: what is documented, and what brokers do

<!-- Made by `python -m lab.verify.docs`; record again with `python -m lab.verify.record`. -->

What RabbitMQ's guides say about acknowledgements, prefetch, confirms, transactions and AMQP 1.0, in our own words, one
claim per row. `ackscope verify --amqp URL` checks each claim against a live broker, and shows the evidence with
`--evidence`. `--lab` starts a private broker for claims that need a broker to be restarted, stopped or in alarm. The
verdicts below come from recorded runs of {versions}, on private brokers of one node, and of three nodes for {cluster}.
Claims about AMQP 1.0 (A01 and later) need RabbitMQ 4.0 or later, and the extra `amqp10`.

Sources: {guides}.

| verdict | meaning |
|---|---|
| holds | the broker does as documented |
| **differs** | the broker does something else; the note says why, if known |
| not applicable | this version or set-up lacks what the claim is about |
| needs --lab | the check needs a broker that may be disturbed |
| could not tell | inconclusive: the check did not finish, or a client cannot observe the difference |

{counts}
"""

CLUSTER = ("S29", "S50")
"""Claims about several nodes."""

_GUIDES = {
    CONFIRMS: "C",
    RELIABILITY: "R",
    SEMANTICS: "S",
    TRANSLATION: "T",
    AMQP10: "A",
    QUORUM: "Q",
    DEAD_LETTERS: "D",
    FLOW: "F",
    MODIFIED: "M",
    OASIS: "O",
}
"""Title of a guide -> its abbreviation in the tables."""

Recorded = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Version -> id of a claim -> its row, as printed by `ackscope verify --json`."""


def load(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Read the recorded runs of a folder, oldest version first."""
    paths = sorted(folder.glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])
    return {path.stem: {row["id"]: row for row in json.loads(path.read_text())["rows"]} for path in paths}


def page(recorded: Recorded) -> str:
    """Return the whole page."""
    versions = list(recorded)
    latest = recorded[versions[-1]]
    guides = "; ".join(f"{short} = {title}" for title, short in _GUIDES.items())
    counted = "\n".join(map(_count, recorded.items()))
    blocks = [HEADER.format(cluster=_listed(CLUSTER), versions=_listed(versions), guides=guides, counts=counted)]
    for group, heading in GROUPS.items():
        ids = [id_ for id_, row in latest.items() if row["group"] == group]
        if ids:
            blocks.append(f"## {heading}\n\n{_table(recorded, ids)}\n{_notes(recorded, ids)}")
    return "\n".join(blocks)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(run: tuple[str, Mapping[str, Mapping[str, Any]]]) -> str:
    version, rows = run
    found = Counter(row["verdict"] for row in rows.values())
    counts = [f"{words} {found[verdict.value]}" for verdict, words in WORDS.items() if found[verdict.value]]
    return f"- {version}: {len(rows)} claims: {', '.join(counts)}"


def _table(recorded: Recorded, ids: Sequence[str]) -> str:
    latest = list(recorded.values())[-1]
    lines = [f"| id | claim | from | {' | '.join(recorded)} |", f"|---|---|---|{'---|' * len(recorded)}"]
    for id_ in ids:
        row = latest[id_]
        verdicts = " | ".join(_verdict(rows.get(id_)) for rows in recorded.values())
        lines.append(f"| {id_} | {_cell(row['documented'])} | {_from(row['source'])} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _from(source: str) -> str:
    return ", ".join(_GUIDES.get(title, title) for title in source.split("; "))


def _verdict(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    words = WORDS[ClaimVerdict(row["verdict"])]
    return f"**{words}**" if row["verdict"] == ClaimVerdict.DIFFERS else words


def _notes(recorded: Recorded, ids: Sequence[str]) -> str:
    """Return the observations of each claim, except for those that hold on every version without a note."""
    blocks = []
    for id_ in ids:
        rows = {version: runs[id_] for version, runs in recorded.items() if id_ in runs}
        # That a broker is too old for AMQP 1.0 is said once, above.
        plain = {ClaimVerdict.HOLDS, ClaimVerdict.NOT_APPLICABLE} if id_.startswith("A") else {ClaimVerdict.HOLDS}
        if all(row["verdict"] in plain and not row["because"] for row in rows.values()):
            continue
        lines = [f"**{id_} {next(iter(rows.values()))['name']}**", ""]
        for version, row in rows.items():
            words = WORDS[ClaimVerdict(row["verdict"])]
            lines.append(f"- {version}, {words}: {_sentence(row['observed'])}")
            if row["because"]:
                lines.append(f"  Why: {_sentence(row['because'])}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _sentence(text: str) -> str:
    return _cell(text[:1].upper() + text[1:].rstrip(".") + ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page(load(Path(sys.argv[1]))))
