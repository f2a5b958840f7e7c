"""Which files hold the rollups of a cluster now: one small document, replaced whole: all tables change at once.

Files are named by what is in them and never change. A file that is replaced stays for `GRACE` seconds, for readers that
read the catalog just before; whoever finds one gone nevertheless reads the catalog again.

Layout: `<rollups>/_catalog/<cluster>.json` (cluster percent-encoded), and below `<rollups>` what `Shelved.path` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

import orjson

from ackscope.clock import SystemClock
from ackscope.errors import DataError

FOLDER = "_catalog"
VERSION = 1
GRACE = 600.0
"""Seconds."""
_SETTLED_SECONDS = 2
"""Times of files are coarse: two states within one tick of the kernel could look like one."""


@dataclass(frozen=True, slots=True)
class Shelved:
    """One file of one table.

    Attributes:
        path: below the rollup folder.
        start, end: the hours since 1970 that it speaks of, from `start` to before `end`; of `baselines`, hours of the
            week. It is the only file of its table that does.
        rows: how many it has.
        parts: a digest of the rows of each hour (of tables of minutes and baselines) or day (of all others) in `start`
            to `end` that has any; by the hour, or the first hour of the day, as text.
        made_of: of hours and days, the digest of the rows that each hour or day was made of, by the hour as text; not
            of those whose rows are no longer kept.
    """

    path: str
    start: int
    end: int
    rows: int
    parts: Mapping[str, str] = field(default_factory=dict)
    made_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The files of one cluster at one moment.

    Attributes:
        number: grows by one with every change.
        made_at: when it was written, ISO 8601 UTC; "" while nothing was.
        tables: files by the name of their table, in the order of their hours.
    """

    cluster: str
    number: int = 0
    made_at: str = ""
    tables: Mapping[str, Sequence[Shelved]] = field(default_factory=dict)

    def shelved(self, table: str, start: int | None = None, end: int | None = None) -> tuple[Shelved, ...]:
        """The files of a table that speak of hours from `start` to before `end`; of all where these are None."""
        return tuple(
            it
            for it in self.tables.get(table, ())
            if (end is None or it.start < end) and (start is None or it.end > start)
        )

    def files(self, root: Path, table: str, start: int | None = None, end: int | None = None) -> tuple[Path, ...]:
        """Where those files are."""
        return tuple(root / it.path for it in self.shelved(table, start, end))


def place(root: Path, cluster: str) -> Path:
    """The file of a cluster's catalog."""
    return root / FOLDER / f"{quote(cluster, safe='')}.json"


def read(root: Path, cluster: str) -> Catalog:
    """The catalog as it is now; an empty one where nothing was rolled up yet.

    Raises:
        DataError: it cannot be read, or is none of this version.
    """
    path = place(root, cluster)
    try:
        document = orjson.loads(path.read_bytes())
        if document["version"] != VERSION:
            raise DataError(
                f"{path}: is of version {document['version']}, this ackscope knows {VERSION}; use the newer one"
            )
        tables = {name: tuple(Shelved(**it) for it in files) for name, files in document["tables"].items()}
        return Catalog(cluster, document["number"], document["made_at"], tables)
    except FileNotFoundError:
        return Catalog(cluster)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); look at its disk and owner") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path}: is no catalog of rollups; `ackscope pipeline run` writes a new one if it is removed"
        ) from None


class Kept:
    """Catalogs as they were last read: that of a month names thousands of files. Several threads may share it."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], Catalog]] = {}

    def read(self, root: Path, cluster: str) -> Catalog:
        """As the function `read`; anew only where the file was replaced.

        Raises:
            DataError: it cannot be read, or is none of this version.
        """
        path = place(root, cluster)
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


def encode(catalog: Catalog) -> bytes:
    """The document that `read` takes."""
    tables = {name: files for name, files in catalog.tables.items() if files}
    return orjson.dumps({"version": VERSION, "number": catalog.number, "made_at": catalog.made_at, "tables": tables})


def clusters(root: Path) -> tuple[str, ...]:
    """Names of all clusters that have rollups, in order."""
    return tuple(sorted(_names(root)))


def _names(root: Path) -> Iterator[str]:
    for path in (root / FOLDER).glob("*.json"):
        if not path.name.startswith("."):
            yield unquote(path.stem)
