"""Writes a file as a whole: readers see the previous content or the new one."""

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, under a hidden name, sync it, and rename it.

    Raises:
        OSError: it cannot be written; the previous content is unchanged.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        # A process that was killed may have left one: process IDs recur, in a container even always.
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
