"""The landing files of a bucket in memory, kept up to date with few requests.

A bucket says nothing of what is new, and lists 1,000 names with one request. Names begin with the time at which the
exporter wrote them, so a quick listing asks each cluster of each table only for names from shortly before the newest
known one on: one request, unless there is much. A whole listing also finds files that were uploaded late, new clusters,
and what was removed. Both are limited to a number of requests per second: with more names they become less frequent.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby

from ackscope.clock import Clock
from ackscope.object_path import ObjectPath, ObjectStatus, Place
from ackscope.tables import LANDING, Table
from pipeline.shard import ALL, Shard
from pipeline.storage.folder_listing import (
    COMPACTED,
    OBJECT_NOTE,
    FolderListing,
    ObjectNote,
    arrived_at,
    is_landing_file,
    listed_objects,
    read_folder,
    stamp_of_status,
)

_NO_NOTE = ObjectNote()

# Our clock and that of the storage differ by less.
CLOCK_SECONDS = 60.0

# Requests per second, on average.
QUICK_RATE, WHOLE_RATE = 4.0, 0.5

# A whole listing is made at least so often, whatever it costs: seconds.
WHOLE_SECONDS = 600.0

# Files of several exporters, or from a spool, arrive in another order than that of their names.
_LOOK_BACK = timedelta(minutes=15)

# Table, cluster, date, name.
_DEPTH = 4
_DATE, _MOMENT = re.compile(r"date=(\d{4}-\d\d-\d\d)"), re.compile(r"(\d{8}T\d{6})-")
_NAMES_PER_REQUEST = 1000
# At the same time.
_REQUESTS = 16


class ObjectListing:
    """What a landing prefix holds. Thread-safe.

    Args:
        root: the prefix.
        clock: decides when to list what.
        since: files written before this time, seconds since 1970, are not new.
        shard: clusters that count.

    Attributes:
        requests: made so far, approximately.
    """

    def __init__(self, root: ObjectPath, clock: Clock, since: float = 0.0, shard: Shard = ALL) -> None:
        self.requests = 0
        self._root, self._clock, self._since, self._shard = root, clock, since, shard
        self._folders: dict[str, dict[str, ObjectPath]] = {}
        self._notes: dict[str, ObjectNote] = {}
        self._reached, self._followed_at, self._followed = 0.0, 0.0, set[ObjectPath]()
        self._new: dict[ObjectPath, Table] = {}
        self._newest: dict[tuple[str, str], datetime] = {}
        self._whole_at, self._whole_due, self._quick_due = 0.0, 0.0, 0.0
        self._lock, self._refreshing = threading.Lock(), threading.Lock()

    @property
    def reached(self) -> float:
        """Every file that existed at this time is not new any more; 0.0 before that is so for any."""
        with self._lock:
            return self._reached

    def refresh(self) -> None:
        """List what is due.

        Raises:
            ObjectStorageError: the storage cannot be used; what was known stays.
        """
        with self._refreshing:
            now, before = self._clock.now(), self.requests
            self._since = max(self._since, self.reached - CLOCK_SECONDS)
            if not self._whole_at or now.mono >= self._whole_due:
                self._list_whole()
                self._whole_at = now.wall
                self._follow(now.wall)
                self._whole_due = now.mono + min((self.requests - before) / WHOLE_RATE, WHOLE_SECONDS)
            elif now.mono >= self._quick_due:
                self._list_newest()
                self._quick_due = now.mono + (self.requests - before) / QUICK_RATE

    def reload(self, folder: Place) -> None:
        """List one folder again, because a file of it is gone.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        if isinstance(folder, ObjectPath):
            found, note = read_folder(folder)
            with self._lock:
                self.requests += _requests(len(found)) + 1
                before = self._folders.pop(folder.key, {})
                self._notes[folder.key] = note
                self._add(found, before)
                for name in before.keys() - {it.name for it in found}:
                    self._new.pop(before[name], None)

    def folder(self, folder: Place) -> FolderListing:
        """A landing folder as it is known."""
        with self._lock:
            key = folder.key if isinstance(folder, ObjectPath) else ""
            return listed_objects(self._folders.get(key, {}).values(), self._notes.get(key, _NO_NOTE))

    def new(self) -> list[tuple[float, Place, Table]]:
        """The files that are not done yet, with the time at which they were written; the oldest first."""
        with self._lock:
            found = [(path.known.st_mtime if path.known else 0.0, path, table) for path, table in self._new.items()]
        return sorted(found, key=lambda it: (it[0], str(it[1])))

    def done(self, paths: Iterable[Place]) -> None:
        """Files that were new are not any more."""
        with self._lock:
            for path in paths:
                if isinstance(path, ObjectPath):
                    self._new.pop(path, None)
            self._settle()

    def _follow(self, wall: float) -> None:
        """Remember what was new at a whole listing, unless that of an earlier one is not done yet."""
        with self._lock:
            if not self._followed:
                self._followed_at, self._followed = wall, set(self._new)
                self._settle()

    def _settle(self) -> None:
        self._followed &= self._new.keys()
        if not self._followed:
            self._reached = self._followed_at

    def _list_whole(self) -> None:
        with ThreadPoolExecutor(_REQUESTS, "list") as pool:
            found = list(pool.map(lambda name: list((self._root / name).below()), LANDING))
            # Before anything counts: the sources of a compaction may be gone from this listing.
            compacted = self._newly_compacted(found)
            again = {folder.key: it for folder, it in zip(compacted, pool.map(read_folder, compacted), strict=True)}
        with self._lock:
            self.requests += sum(_requests(len(its)) for its in found) + 2 * len(again)
            before, self._folders = self._folders, {}
            self._newest.clear()
            for key, its in groupby(chain(*found), lambda it: it.parent.key):
                self._add(again[key][0] if key in again else its, before.get(key, {}))
            self._notes |= {key: note for key, (_, note) in again.items()}
            self._notes = {key: it for key, it in self._notes.items() if OBJECT_NOTE in self._folders.get(key, {})}
            there = {path for folder in self._folders.values() for path in folder.values()}
            self._new = {path: table for path, table in self._new.items() if path in there}

    def _list_newest(self) -> None:
        with self._lock:
            newest = dict(self._newest)
        # A wrong clock must not make later names invisible.
        latest = datetime.fromtimestamp(self._clock.now().wall, UTC)

        def names(key: tuple[str, str]) -> list[ObjectPath]:
            first = min(newest[key], latest) - _LOOK_BACK
            folder = self._root / key[0] / key[1]
            return list(folder.below(f"date={first:%Y-%m-%d}/{first:%Y%m%dT%H%M%S}"))

        with ThreadPoolExecutor(_REQUESTS, "list") as pool:
            found = list(pool.map(names, newest))
        compacted = self._newly_compacted(found)
        with self._lock:
            self.requests += sum(_requests(len(its)) for its in found)
            for it in chain(*found):
                if it.parent not in compacted:
                    self._add([it], self._folders.get(it.parent.key, {}))
        for folder in compacted:
            self.reload(folder)

    def _newly_compacted(self, found: Iterable[Iterable[ObjectPath]]) -> list[ObjectPath]:
        """The folders that were compacted since their note was read."""
        notes = [it for it in chain(*found) if it.name == OBJECT_NOTE]
        with self._lock:
            known = [self._folders.get(it.parent.key, {}).get(it.name) for it in notes]
        return [it.parent for it, old in zip(notes, known, strict=True) if old is None or old.known != it.known]

    def _add(self, found: Iterable[ObjectPath], before: Mapping[str, ObjectPath]) -> None:
        """Record objects of one folder; those that are not as they were before are new."""
        for path in found:
            parts = path.relative_to(self._root).parts
            if len(parts) != _DEPTH or parts[0] not in LANDING or not _is_ours(parts[1], self._shard):
                continue
            old = before.get(path.name)
            self._folders.setdefault(path.parent.key, {})[path.name] = path
            if not is_landing_file(path.name):
                continue
            moment, key = _moment(parts[2], path.name), (parts[0], parts[1])
            if moment is not None:
                self._newest[key] = max(moment, self._newest.get(key, moment))
            is_changed = old is None or old.known != path.known
            if is_changed and path.known and self._is_new(path, path.known):
                self._new[path] = LANDING[parts[0]]

    def _is_new(self, path: ObjectPath, status: ObjectStatus) -> bool:
        # Only the first listing asks how old files are. The sources of a compacted file may all be rolled up.
        is_known = self._whole_at and not COMPACTED.fullmatch(path.name)
        return bool(is_known) or arrived_at(path, stamp_of_status(status)) >= self._since


def _is_ours(folder: str, shard: Shard) -> bool:
    return folder.startswith("cluster=") and folder.removeprefix("cluster=") in shard


def _moment(folder: str, name: str) -> datetime | None:
    """The time in a name, or the begin of the date of its folder; None if it has neither."""
    named, dated = _MOMENT.match(name), _DATE.fullmatch(folder)
    try:
        if named:
            return datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        return datetime.strptime(dated[1], "%Y-%m-%d").replace(tzinfo=UTC) if dated else None
    except ValueError:
        return None


def _requests(names: int) -> int:
    return 1 + names // _NAMES_PER_REQUEST
