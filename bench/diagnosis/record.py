"""Results of played faults, in `bench/diagnosis/results/VERSION-SOURCE.jsonl`: one line per fault, sorted by its name.

A later run of a fault replaces its line and no other. Nothing in a line depends on the machine.
"""

import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

import orjson

from ackscope.errors import UsageError

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"

_MEASURED = ("ackscope", "diagnosis", "exporter", "probes")
"""Folders of what the runs judge."""

_ADDRESS = re.compile(r"\b(127\.0\.0\.1|localhost|\[::1\]):\d+")

Outcome = Literal["named", "inconclusive", "silent"]

ClientNamed = Literal["", "right", "among", "other"]
"""Whether the finding names the client of the fault, or lists its connection among those that may be it;
"" if it does neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultResult:
    """The latest result of a fault on one version with one source.

    Attributes:
        rule: the rule that should name it.
        protocol: what its clients use.
        broker: the full version.
        outcome: named; inconclusive: its rule says why it cannot judge; silent: neither.
        seconds: from its being in effect to its finding.
        under: rule of the cause whose consequence the finding was.
        client: whether the finding names the client of the fault.
        reason: code of the reason of an inconclusive rule.
        because: that reason, as it was shown.
        also_said: "severity rule" of findings that were not expected, of all faults that were in effect together.
        commit: the last one that changed what was measured; with a `+` if it was changed since.
        date: of the run, UTC.
    """

    fault: str
    rule: str
    protocol: str
    broker: str
    nodes: int
    outcome: Outcome
    seconds: int | None = None
    severity: str = ""
    under: str = ""
    client: ClientNamed = ""
    reason: str = ""
    because: str = ""
    also_said: list[str] = field(default_factory=list)
    commit: str = ""
    date: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FaultResult":
        """Return the result in a row of `bench.diagnosis.faults --json`."""
        seconds = row["reported"] if row["seconds"] is None else row["seconds"]
        named = seconds is not None
        known = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        own = {
            "outcome": "named" if named else "inconclusive" if row["reason"] else "silent",
            "seconds": round(seconds) if named else None,
            "client": row["client"] if named else "",
            "because": _ADDRESS.sub("HOST:PORT", row["unsure"]),
            # A subject may be a connection with its ports.
            "also_said": sorted({" ".join(text.split()[:2]) for text in row["others"]}),
        }
        return cls(**{**known, **own})


def results_file(version: str, source: str, folder: Path = RESULTS) -> Path:
    """Return the file of a minor version and a source."""
    return folder / f"{version}-{source}.jsonl"


def read_results(path: Path) -> list[FaultResult]:
    """Return the results in a file, sorted by fault; none if there is no such file.

    Raises:
        UsageError: a line is not a result.
    """
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(FaultResult(**orjson.loads(line)))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{path.name}, line {number}: {error}; play the fault again with --record") from None
    return found


def record(path: Path, results: Iterable[FaultResult]) -> None:
    """Write results into a file; those of other faults in it stay."""
    merged = {each.fault: each for each in (*read_results(path), *results)}
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(_line(merged[name]) for name in sorted(merged)))


def _line(result: FaultResult) -> bytes:
    return orjson.dumps({key: value for key, value in asdict(result).items() if value not in (None, "", [])}) + b"\n"


@cache
def commit() -> str:
    """Return the last commit that changed what is measured; "" outside of a checkout."""
    found = _git("log", "-1", "--abbrev=8", "--format=%h", "--", *_MEASURED)
    return found + "+" if found and _git("status", "--porcelain", "--", *_MEASURED) else found


def today() -> str:
    """Return the date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
