"""Settings of triage."""

from pathlib import Path

from pydantic import field_validator

from ackscope.settings import Settings


class TriageSettings(Settings):
    """What people say about findings: who acknowledged them, who works on them, until when they are muted.

    Attributes:
        file: where it is stored. If unset, nothing can be acknowledged or muted. Everybody who can reach the exporter
            or its dashboard can change it.
    """

    file: Path | None = None

    @field_validator("file")
    @classmethod
    def _is_a_file(cls, value: Path | None) -> Path | None:
        if value is not None and value.exists() and not value.is_file():
            raise ValueError(f"{value} is not a regular file; give one, or a path that does not exist yet")
        return value
