"""Publish the data files of a cluster as Delta tables, one per table of rollups, so that other engines can read them.

The log is at `<rollups>/<table>/cluster=<cluster>/_delta_log`, over the same files: nothing is copied. A table per
cluster has one writer, so commits of different clusters never meet. The manifest stays what counts: before each commit
a log is compared with it and brought up to date, so whatever a killed job left is repaired by the next one.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib.util import find_spec
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.arrow_files import footer
from ackscope.clock import SystemClock
from ackscope.log import get_logger
from ackscope.manifest import DataFile, Manifest
from ackscope.object_path import (
    ObjectPath,
    ObjectStorageError,
    Place,
    relative,
    short_reason,
)
from ackscope.storage_options import client_settings
from ackscope.tables import ROLLUPS, Table
from ackscope.tables.arrow import arrow_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, CommitProperties, RemoveAction

log = get_logger(__name__)

FOLDER = "_delta_log"

# The files of an old version stay for `GRACE_SECONDS`. The log remembers them for longer: a reader never finds a file
# that the log has forgotten.
_CONFIGURATION = {
    "delta.checkpointInterval": "50",
    "delta.enableExpiredLogCleanup": "true",
    "delta.logRetentionDuration": "interval 2 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
_PARTITIONED_BY = ["cluster", "date"]

# To write one log; before the last one it is removed. In a bucket, the first failure may be a lost connection.
_ATTEMPTS, _ATTEMPTS_ON_STORAGE = 2, 3
# Tables that are published at the same time.
_REQUESTS = 8
# As long as our own client tries.
_CLIENT = {"CONNECT_TIMEOUT": "5s", "TIMEOUT": "60s", "RETRY_TIMEOUT": "20s"}

# Folders of logs that were refused, and logged.
_refused: set[str] = set()

# Bounds of text are prefixes of this many characters; the upper one ends with the highest character that there is.
_TEXT_BOUND = 32
_HIGHEST = "\U0010ffff"


def is_available() -> bool:
    """Whether the package that writes the logs is installed."""
    return find_spec("deltalake") is not None


def table_folder(root: Place, table: str, cluster: str) -> Place:
    """The folder that a reader opens as a Delta table."""
    return root / table / f"cluster={quote(cluster, safe='')}"


def table_options(folder: Place) -> dict[str, str]:
    """The `storage_options` with which it is opened: credentials and endpoint as everywhere, and conditional puts."""
    if not isinstance(folder, ObjectPath):
        return {}
    conditional = {"AWS_CONDITIONAL_PUT": "etag"} if folder.base.startswith("s3://") else {}
    return _CLIENT | conditional | client_settings()


def table_address(folder: Place) -> str:
    """The address with which it is opened: names in a URL are encoded once more."""
    return f"{folder.base}/{quote(folder.key, safe='/=')}" if isinstance(folder, ObjectPath) else str(folder)


def publish(root: Place, before: Manifest, after: Manifest) -> dict[str, int]:
    """Bring the Delta tables of a cluster up to date; return the version of each table. Requires the writer lock.

    A log that cannot be brought up to date is written again from the start. If that fails, too, it is removed with a
    warning, because it would soon name files that are gone, and the next commit tries again: the history does not
    depend on it.

    Args:
        root: the rollup folder.
        before: the manifest that counts now.
        after: the manifest that is about to replace it.
    """
    versions, changed = dict[str, int](), list[str]()
    for name in sorted(before.tables.keys() | after.tables.keys()):
        old, new = before.files_for(name), after.files_for(name)
        known = before.versions.get(name)
        if name not in ROLLUPS or (known is None and not new):
            continue
        if known is not None and [it.path for it in old] == [it.path for it in new]:
            versions[name] = known
        else:
            changed.append(name)

    def publish_one(name: str) -> int | None:
        return _attempt(root, ROLLUPS[name], after, before.files_for(name), after.files_for(name))

    if isinstance(root, ObjectPath) and len(changed) > 1:
        # Most of the time is spent waiting for requests.
        with ThreadPoolExecutor(min(_REQUESTS, len(changed)), "delta") as pool:
            found = list(pool.map(publish_one, changed))
    else:
        found = [publish_one(name) for name in changed]
    return versions | {name: it for name, it in zip(changed, found, strict=True) if it is not None}


def _attempt(
    root: Place, table: Table, after: Manifest, old: Sequence[DataFile], new: Sequence[DataFile]
) -> int | None:
    folder = table_folder(root, table.name, after.cluster) / FOLDER
    attempts = _ATTEMPTS_ON_STORAGE if isinstance(root, ObjectPath) else _ATTEMPTS
    for left in reversed(range(attempts)):
        try:
            version = _publish_table(root, table, after, old, new)
            _refused.discard(str(folder))
        except ObjectStorageError:
            # The manifest could not be committed either.
            raise
        # The errors of delta-rs have no common class, and none of them may stop the history.
        except Exception as error:  # noqa: BLE001
            if left <= 1:
                _remove(folder)
            if not left and str(folder) not in _refused:
                _refused.add(str(folder))
                log.warning("Delta table not published, will be retried", folder=str(folder), error=short_reason(error))
        else:
            return version
    return None


def retire(root: Place, manifest: Manifest) -> None:
    """Remove the logs of a cluster: without new versions they would soon name files that are gone."""
    for name in ROLLUPS:
        _remove(table_folder(root, name, manifest.cluster) / FOLDER)


def _remove(folder: Place) -> None:
    if isinstance(folder, ObjectPath):
        for it in folder.below():
            it.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def statistics(metadata: pq.FileMetaData, table: Table) -> dict[str, Any]:
    """The statistics of a file as Delta has them: rows, nulls, and bounds of every column that has an order."""
    names = [column.path for column in map(metadata.schema.column, range(metadata.num_columns))]
    nulls: dict[str, int] = {}
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    for index, name in enumerate(names):
        found = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if any(it is None or not it.has_null_count for it in found):
            continue
        nulls[name] = sum(it.null_count for it in found)
        bounded = [it for it in found if it.has_min_max]
        complete = all(it.has_min_max or it.num_values == 0 for it in found)
        if bounded and complete and not pa.types.is_boolean(arrow_schema(table).field(name).type):
            low, high = _low(min(it.min for it in bounded)), _high(max(it.max for it in bounded))
            if low is not None and high is not None:
                lows[name], highs[name] = low, high
    return {"numRecords": metadata.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}


def _publish_table(root: Place, table: Table, after: Manifest, old: Sequence[DataFile], new: Sequence[DataFile]) -> int:
    from deltalake import DeltaTable  # noqa: PLC0415  takes long, and is optional

    folder = table_folder(root, table.name, after.cluster)
    address, options = table_address(folder), table_options(folder)
    files = {str(relative(root / it.path, folder)): it for it in new}
    properties = _properties(after)
    delta = None
    if DeltaTable.is_deltatable(address, options):
        delta = DeltaTable(address, storage_options=options)
    if delta is not None and not _has_columns(delta, table):
        _remove(folder / FOLDER)
        delta = None
    if delta is None:
        _create(folder, table, after.cluster, files, properties)
        return int(DeltaTable(address, storage_options=options).version())
    there = _active(delta)
    # A compaction writes the same rows into other files. That is only certain if the log was up to date.
    is_new = set(there) != {str(relative(root / it.path, folder)) for it in old} or _parts(old) != _parts(new)
    actions: list[AddAction | RemoveAction] = [
        *(_removed(path, size, after.cluster, data_change=is_new) for path, size in there.items() if path not in files),
        *_added(folder, table, after.cluster, files.keys() - there.keys(), data_change=is_new),
    ]
    if actions:
        delta.create_write_transaction(actions, "append", delta.schema(), _PARTITIONED_BY, commit_properties=properties)
        delta.update_incremental()
    return int(delta.version())


def _create(
    folder: Place, table: Table, cluster: str, files: Mapping[str, DataFile], properties: "CommitProperties"
) -> None:
    from deltalake import Schema  # noqa: PLC0415  takes long, and is optional
    from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

    create_table_with_add_actions(
        table_address(folder),
        Schema.from_arrow(_schema(table)),
        _added(folder, table, cluster, files, data_change=True),
        partition_by=_PARTITIONED_BY,
        name=table.name,
        description=table.grain,
        configuration=_CONFIGURATION,
        storage_options=table_options(folder),
        commit_properties=properties,
    )


def _properties(manifest: Manifest) -> "CommitProperties":
    """The number of the manifest as transaction of the log, so that a reader can tell which state it is."""
    from deltalake.transaction import CommitProperties, Transaction  # noqa: PLC0415  takes long, and is optional

    return CommitProperties(app_transactions=[Transaction(f"ackscope/{manifest.cluster}", manifest.number)])


def _schema(table: Table) -> pa.Schema:
    """All columns may be null: files of older versions lack columns. The partition columns are in the path only."""
    columns = [field.with_nullable(True) for field in arrow_schema(table)]
    return pa.schema([*columns, pa.field("cluster", pa.string()), pa.field("date", pa.date32())])


def _has_columns(delta: "DeltaTable", table: Table) -> bool:
    found = [(it.name, str(it.type)) for it in delta.schema().fields]
    from deltalake import Schema  # noqa: PLC0415  takes long, and is optional

    return found == [(it.name, str(it.type)) for it in Schema.from_arrow(_schema(table)).fields]


def _active(delta: "DeltaTable") -> dict[str, int]:
    """The size of each file of the newest version, by its path."""
    rows = pa.table(delta.get_add_actions())
    return dict(zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True))


def _added(folder: Place, table: Table, cluster: str, paths: Iterable[str], *, data_change: bool) -> "list[AddAction]":
    from deltalake.transaction import AddAction  # noqa: PLC0415  takes long, and is optional

    found = []
    for path in sorted(paths):
        file = folder / path
        state, stats = file.stat(), orjson.dumps(statistics(footer(file), table)).decode()
        found.append(
            AddAction(path, state.st_size, _partition(cluster, path), int(state.st_mtime * 1000), data_change, stats)
        )
    return found


def _removed(path: str, size: int, cluster: str, *, data_change: bool) -> "RemoveAction":
    from deltalake.transaction import RemoveAction  # noqa: PLC0415  takes long, and is optional

    now = int(SystemClock().now().wall * 1000)
    return RemoveAction(path, data_change, now, size, _partition(cluster, path))


def _partition(cluster: str, path: str) -> dict[str, str | None]:
    return {"cluster": cluster, "date": path.split("/", maxsplit=1)[0].removeprefix("date=")}


def _parts(files: Sequence[DataFile]) -> dict[str, str]:
    return dict(chain.from_iterable(it.parts.items() for it in files))


def _low(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT_BOUND]
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return value if not isinstance(value, float) or isfinite(value) else None


def _high(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_BOUND else value[:_TEXT_BOUND] + _HIGHEST
    if isinstance(value, datetime):
        # Milliseconds, rounded up.
        return _low(value if value.microsecond % 1000 == 0 else value + (datetime.resolution * 1000))
    return _low(value)
