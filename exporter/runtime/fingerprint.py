"""Detects whether settings changed: compares their values and the content of the files they name."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel


class Fingerprint(NamedTuple):
    """Settings and the files they name at one moment. Equal fingerprints mean equal behaviour.

    Attributes:
        settings: the settings models; they hide their secrets.
        files: path -> SHA-256 of the content; None if the file cannot be read.
    """

    settings: tuple[Any, ...]
    files: dict[Path, bytes | None]


def fingerprint(*settings: BaseModel | None) -> Fingerprint:
    """Return the fingerprint of the settings and of the present content of their files."""
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
