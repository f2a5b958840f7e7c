"""Whether settings are still the same: what they say, and what is in the files that they name."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel


class Fingerprint(NamedTuple):
    """Settings at one moment; two that are equal would do the same.

    Attributes:
        settings: the models themselves, which hide their secrets.
        files: path -> digest of its content; None for one that cannot be read.
    """

    settings: tuple[Any, ...]
    files: dict[Path, bytes | None]


def fingerprint(*settings: BaseModel | None) -> Fingerprint:
    """Take it now."""
    return Fingerprint(settings, {path: _digest(path) for model in settings for path in _paths(model)})


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _paths(getattr(value, name))
    elif isinstance(value, dict):
        for item in value.values():
            yield from _paths(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _paths(item)


def _digest(path: Path) -> bytes | None:
    try:
        return sha256(path.read_bytes()).digest()
    except OSError:
        return None
