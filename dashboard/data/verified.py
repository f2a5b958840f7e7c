"""What `ackscope verify --json` found on a broker, read from the file that somebody kept of it."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
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
class Verified:
    """One run.

    Attributes:
        broker: its version.
    """

    broker: str | None
    rows: tuple[Claim, ...]


_VERIFIED = TypeAdapter(Verified)


def read(path: Path) -> tuple[Verified | None, str | None]:
    """The run, or why it cannot be shown."""
    try:
        return _VERIFIED.validate_json(path.read_bytes()), None
    except OSError as error:
        return None, f"{path}: cannot be read ({(error.strerror or 'unknown').lower()})"
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        return None, f"{path}: is not what `ackscope verify --json` prints ({where}: {problem['msg']})"
