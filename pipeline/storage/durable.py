"""Atomic and durable writes, on disk and on object storage."""

import io
import os
from collections.abc import Callable
from typing import IO

from ackscope.errors import DataError
from ackscope.object_path import ObjectPath, Place


def atomic_write(path: Place, fill: Callable[[IO[bytes]], object], token: str = "") -> None:
    """Write a temporary file, fsync it and rename it: a reader sees no file, the old one or the new one.

    The rename itself is durable only after `sync_folder`. Writers that may write the same file at the same time each
    pass a `token`, which becomes part of the temporary name. An object is written as a whole at once.

    Raises:
        DataError: the disk refuses it; nothing of the attempt is left.
    """
    if isinstance(path, ObjectPath):
        path.write_bytes(content_of(fill))
        return
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


def content_of(fill: Callable[[IO[bytes]], object]) -> memoryview:
    """What a function writes into a file."""
    buffer = io.BytesIO()
    fill(buffer)
    return buffer.getbuffer()


def sync_folder(folder: Place) -> None:
    """Make the names in a folder durable; those of objects are.

    Raises:
        DataError: the disk refuses it.
    """
    if isinstance(folder, ObjectPath):
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise write_error(folder, error) from None


def remove(path: Place) -> bool:
    """Remove a file that is not needed any more; return False if that fails, which only costs disk space."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def write_error(path: Place, error: OSError) -> DataError:
    """The error for a file that cannot be written."""
    return DataError(f"{path}: cannot be written ({error.strerror or error}); check its disk and owner")
