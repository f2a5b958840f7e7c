"""The manifest of a cluster's rollups: the current data files, in one small document that is replaced atomically.

Replacing it changes all tables at the same moment. A data file is named by a digest of its content and never changes.
After it is replaced it stays on disk for `GRACE_SECONDS`, for readers with the previous manifest; a reader that finds a
file missing reads the manifest again.

Layout: `<rollups>/_catalog/<cluster>.json` (cluster percent-encoded), and `DataFile.path` below `<rollups>`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import orjson

from ackscope.clock import SystemClock
from ackscope.errors import DataError
from ackscope.object_path import ObjectPath, ObjectStorageError, Place

FOLDER = "_catalog"
VERSION = 1
GRACE_SECONDS = 600.0

# Seconds. File times are coarse: two versions written within one tick of the kernel clock can have the same time.
_SETTLED_SECONDS = 2


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of one table. The attributes are the keys of the JSON document.

    Attributes:
        path: relative to the rollup folder.
        start, end: the hours since 1970 that it covers, `end` exclusive; for `baselines`, hours of the week. No other
            file of its table covers them.
        rows: number of rows.
        parts: digest of the rows of each hour (tables of minutes, `baselines`) or day (all other tables) that has any,
            by the hour, or the first hour of the day, as text.
        made_of: for tables of hours and days, the digest of the source rows of each, by the hour as text; absent where
            the source rows have expired.
    """

    path: str
    start: int
    end: int
    rows: int
    parts: Mapping[str, str] = field(default_factory=dict)
    made_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The data files of one cluster at one moment.

    Attributes:
        number: increases by one with every commit.
        made_at: time of the commit, ISO 8601 UTC; "" before the first one.
        tables: files by table name, in the order of their hours.
        versions: the version of each table's Delta log that has exactly these files; absent if it is not published.
        replaced: on object storage, files that do not count any more, with the time of their replacement, seconds since
            1970; on a disk their own time tells it.
        stored: on object storage, the version of the object that it was read from; "" if there is none.
    """

    cluster: str
    number: int = 0
    made_at: str = ""
    tables: Mapping[str, Sequence[DataFile]] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, float] = field(default_factory=dict)
    stored: str = ""

    def files_for(self, table: str, start: int | None = None, end: int | None = None) -> tuple[DataFile, ...]:
        """The files of a table that cover hours from `start` to before `end`; None means unbounded."""
        return tuple(
            it
            for it in self.tables.get(table, ())
            if (end is None or it.start < end) and (start is None or it.end > start)
        )

    def paths(self, root: Place, table: str, start: int | None = None, end: int | None = None) -> tuple[Place, ...]:
        """The paths of `files_for`."""
        return tuple(root / it.path for it in self.files_for(table, start, end))


def manifest_path(root: Place, cluster: str) -> Place:
    """The path of a cluster's manifest."""
    return root / FOLDER / f"{quote(cluster, safe='')}.json"


def read(root: Place, cluster: str) -> Manifest:
    """Read the current manifest of a cluster; an empty one if nothing has been rolled up yet.

    Raises:
        DataError: it cannot be read, or has another version.
    """
    path = manifest_path(root, cluster)
    try:
        content, stored = path.read_version() if isinstance(path, ObjectPath) else (path.read_bytes(), "")
        document = orjson.loads(content)
        if document["version"] != VERSION:
            raise DataError(
                f"{path}: manifest has version {document['version']}, this ackscope reads {VERSION}; use the newer one"
            )
        tables = {name: tuple(map(_data_file, files)) for name, files in document["tables"].items()}
        versions = {str(name): int(version) for name, version in document.get("versions", {}).items()}
        replaced = {str(name): float(at) for name, at in document.get("replaced", {}).items()}
        return Manifest(cluster, int(document["number"]), str(document["made_at"]), tables, versions, replaced, stored)
    except FileNotFoundError:
        return Manifest(cluster)
    except ObjectStorageError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its disk and owner") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(
            f"{path}: not a valid manifest; remove it and `ackscope pipeline run` writes a new one"
        ) from None


def _data_file(document: Mapping[str, Any]) -> DataFile:
    numbers = (document["start"], document["end"], document["rows"])
    if not isinstance(document["path"], str) or not all(isinstance(number, int) for number in numbers):
        raise TypeError(document)
    return DataFile(**document)


class ManifestCache:
    """Caches parsed manifests by path, because a month of rollups has thousands of files. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Place, tuple[tuple[int, int, int], Manifest]] = {}

    def read(self, root: Place, cluster: str) -> Manifest:
        """Same as the function `read`, but parses the file only when it was replaced.

        Raises:
            DataError: it cannot be read, or has another version.
        """
        path = manifest_path(root, cluster)
        try:
            seen = path.stat()
        except OSError:
            return read(root, cluster)
        if abs(SystemClock().now().wall - seen.st_mtime) < _SETTLED_SECONDS:
            return read(root, cluster)
        stamp = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, read(root, cluster))
        return known[1]


def encode(manifest: Manifest) -> bytes:
    """The JSON document of a manifest, as `read` expects it."""
    tables = {name: files for name, files in manifest.tables.items() if files}
    document = {"version": VERSION, "number": manifest.number, "made_at": manifest.made_at, "tables": tables}
    more = {"versions": manifest.versions, "replaced": manifest.replaced}
    return orjson.dumps(document | {name: value for name, value in more.items() if value})


def clusters(root: Place) -> tuple[str, ...]:
    """Names of all clusters that have rollups, sorted."""
    return tuple(sorted(_names(root)))


def _names(root: Place) -> Iterator[str]:
    for path in (root / FOLDER).glob("*.json"):
        if not path.name.startswith("."):
            yield unquote(path.stem)
