"""The report of `ackscope verify --json`, read from a file."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedClaim:
    """One documented claim, and what the broker was observed to do.

    Attributes:
        verdict: holds, differs, not-applicable, needs-lab or could-not-tell.
        because: explanation of a verdict other than `holds`.
    """

    name: str
    group: str
    verdict: str
    documented: str
    observed: str | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Result of one verify run.

    Attributes:
        broker: version of the broker.
    """

    broker: str | None
    rows: tuple[VerifiedClaim, ...]


_REPORT = TypeAdapter(VerifyReport)


def read(path: Path) -> tuple[VerifyReport | None, str | None]:
    """The report, or why it cannot be read."""
    try:
        return _REPORT.validate_json(path.read_bytes()), None
    except OSError as error:
        return None, f"{path}: cannot be read ({(error.strerror or 'unknown').lower()})"
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        return None, f"{path}: not a report of `ackscope verify --json` ({where}: {problem['msg']})"
