"""The first hour of each cluster whose raw rows are complete; older hours are never rebuilt.

Without it, one late row of an expired hour would be rolled up as if it were the whole hour.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

import orjson

from ackscope.errors import DataError
from ackscope.object_path import ConflictError, ObjectPath, ObjectStorageError, Place
from pipeline.storage.durable import atomic_write, write_error

NAME = "_expired.json"
_LOCK = "_expired.lock"
# To replace the object while jobs of other clusters do.
_ATTEMPTS = 100


def first_whole_hours(landing: Place) -> dict[str, int]:
    """Hours since 1970 by cluster; clusters that never lost raw rows are absent.

    Raises:
        DataError: the file is damaged.
    """
    path = landing / NAME
    try:
        return {str(name): int(hour) for name, hour in orjson.loads(path.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except ObjectStorageError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its disk and owner") from None
    except (ValueError, AttributeError, TypeError):
        raise DataError(
            f"{path}: is damaged (it records which raw hours have expired); remove it and "
            "`ackscope pipeline expire` writes it again"
        ) from None


def raise_floor(landing: Place, cluster: str, hour: int) -> None:
    """Set the first complete hour of a cluster; it never goes back.

    Raises:
        DataError: the file is damaged or cannot be written.
    """
    if hour > first_whole_hours(landing).get(cluster, 0):
        if isinstance(landing, ObjectPath):
            _raise_object(landing / NAME, cluster, hour)
            return
        with _lock(landing):
            hours = first_whole_hours(landing)
            later = {cluster: max(hour, hours.get(cluster, 0))}
            atomic_write(landing / NAME, partial(_write, orjson.dumps(hours | later, option=orjson.OPT_SORT_KEYS)))


def _raise_object(path: ObjectPath, cluster: str, hour: int) -> None:
    for _ in range(_ATTEMPTS):
        try:
            content, version = path.read_version()
        except FileNotFoundError:
            content, version = b"{}", ""
        hours = orjson.loads(content)
        later = {cluster: max(hour, hours.get(cluster, 0))}
        with suppress(ConflictError):
            path.write_version(orjson.dumps(hours | later, option=orjson.OPT_SORT_KEYS), version)
            return
    raise DataError(f"{path}: other jobs write it all the time; run it again")


@contextmanager
def _lock(landing: Path) -> Iterator[None]:
    """Jobs of several clusters write the same file, one after the other."""
    path = landing / _LOCK
    try:
        file = path.open("ab")
    except OSError as error:
        raise write_error(path, error) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
