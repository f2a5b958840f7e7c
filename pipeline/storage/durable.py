"""Atomic and durable writes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ackscope.errors import DataError


def atomic_write(path: Path, fill: Callable[[IO[bytes]], object], token: str = "") -> None:
    """Write a temporary file, fsync it and rename it: a reader sees no file, the old one or the new one.

    The rename itself is durable only after `sync_folder`. Writers that may write the same file at the same time each
    pass a `token`, which becomes part of the temporary name.

    Raises:
        DataError: the disk refuses it; nothing of the attempt is left.
    """
    temporary = path.with_name(f".{path.name}.{token}.tmp" if token else f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        remove(temporary)
        raise write_error(path, error) from None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        DataError: the disk refuses it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise write_error(folder, error) from None


def remove(path: Path) -> bool:
    """Remove a file that is not needed any more; return False if that fails, which only costs disk space."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def write_error(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be written."""
    return DataError(f"{path}: cannot be written ({error.strerror or error}); check its disk and owner")
