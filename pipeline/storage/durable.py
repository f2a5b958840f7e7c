"""Files that are whole and on the disk before anybody sees them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ackscope.errors import DataError


def atomic_write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write beside, make it durable, rename: a reader sees no file, or the old one, or the new one.

    The rename itself is durable only after `sync` of the folder.

    Raises:
        DataError: the disk does not take it; nothing of the attempt stays.
    """
    temporary = path.with_name(f".{path.name}.tmp")
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
        DataError: the disk does not take it.
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
    """Remove a file that is of no use any more; where that fails it only takes room."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def write_error(path: Path, error: OSError) -> DataError:
    """What is said of a file that cannot be written."""
    return DataError(f"{path}: cannot be written ({error.strerror or error}); look at its disk and owner")
