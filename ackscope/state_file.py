"""Reads a file of state that an earlier run wrote."""

from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from ackscope.log import get_logger

log = get_logger(__name__)


class Versioned(Protocol):
    """The content of a state file."""

    @property
    def version(self) -> int:
        """The format that it was written in."""
        ...


T = TypeVar("T", bound=Versioned)


def read_state(path: Path, schema: TypeAdapter[T], version: int) -> T | None:
    """The content of a state file; None if there is none, it cannot be read, or it is invalid or of another version.

    An invalid file is renamed to `NAME.invalid`, so that nothing is lost and the program still starts.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("state not read", file=str(path), error=error.strerror)
        return None
    try:
        found = schema.validate_json(content)
    except ValidationError:
        found = None
    if found is not None and found.version == version:
        return found
    aside = path.with_name(f"{path.name}.invalid")
    log.warning("state not read: the file is invalid, renamed", file=str(path), renamed=str(aside))
    try:
        path.replace(aside)
    except OSError as error:
        log.warning("file not renamed", file=str(path), error=error.strerror)
    return None
