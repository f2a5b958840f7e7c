"""What `ackscope verify --json` found on a broker, read from the file that somebody kept of it."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedClaim:
    """One documented claim, and what this broker does.

    Attributes:
        verdict: holds, differs, not-applicable, needs-lab or could-not-tell.
        because: what explains a verdict that is not `holds`.
    """

    name: str
    group: str
    verdict: str
    documented: str
    observed: str | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """One run.

    Attributes:
        broker: its version.
    """

    broker: str | None
    rows: tuple[VerifiedClaim, ...]


_VERIFIED = TypeAdapter(VerifyReport)


def read(path: Path) -> tuple[VerifyReport | None, str | None]:
    """The run, or why it cannot be shown."""
    try:
        return _VERIFIED.validate_json(path.read_bytes()), None
    except OSError as error:
        return None, f"{path}: cannot be read ({(error.strerror or 'unknown').lower()})"
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        return None, f"{path}: is not what `ackscope verify --json` prints ({where}: {problem['msg']})"
