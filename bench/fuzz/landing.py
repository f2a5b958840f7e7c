"""Landing files, baselines and their manifest, damaged: what pipeline and exporter read from a disk."""

import io
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.baselines import hour_of_week
from ackscope.errors import DataError
from ackscope.tables import BASELINES, LANDING, Kind, Table
from ackscope.tables.arrow import arrow_schema
from bench.fuzz.cases import FuzzCase, PromiseBroken, one_line
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import NUMBERS, WORDS, Mutator
from bench.fuzz.whole_way import BEGAN, CLUSTER, CaseClock
from exporter.history.bands import read_bands
from pipeline.storage.compaction import output_count, scan_partition
from pipeline.storage.landing import Landing, Partition

_FILE = "file"
_MANIFEST = "manifest"
_ROWS = 40
_DAY = datetime.fromtimestamp(BEGAN.wall, UTC).date()
_HOUR = hour_of_week(BEGAN.wall)
_LANDED = f"{datetime.fromtimestamp(BEGAN.wall, UTC):%Y%m%dT%H%M%S}-0123abcd-000001.parquet"
_BANDS = f"{BASELINES.name}/cluster={CLUSTER}/date=1970-01-01/hour={_HOUR:03d}.0123456789abcdef.parquet"
_TYPES = (
    *(pa.int8(), pa.int32(), pa.uint64(), pa.float32(), pa.string(), pa.large_string(), pa.binary(), pa.bool_()),
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC"), pa.date32(), pa.decimal128(38, 10)),
    *(pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.dictionary(pa.int32(), pa.string()), pa.null()),
)


class LandingFolders:
    """The target."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")  # noqa: S108  files of a case, in memory
        self._folder = Path(tempfile.mkdtemp(prefix="ackscope-fuzz-", dir=memory if memory.is_dir() else None))
        self._clock = CaseClock(60.0)
        self._tables = {table.name: _rows(table) for table in (*LANDING.values(), BASELINES)}
        self._files = {name: _written(rows) for name, rows in self._tables.items()}
        self._document = {
            "version": manifest.VERSION,
            "number": 1,
            "made_at": self._clock.now().iso(),
            "tables": {BASELINES.name: [{"path": _BANDS, "start": _HOUR, "end": _HOUR + 1, "rows": _ROWS}]},
        }

    def make(self, rng: Random) -> FuzzCase:
        """Damage the bytes, the columns or the rows of a file, or the manifest."""
        name, mutator = rng.choice(list(self._files)), Mutator(rng)
        if name == BASELINES.name and rng.random() < 0.5:
            return FuzzCase(name, {_MANIFEST: mutator.document(orjson.loads(orjson.dumps(self._document)))})
        if rng.random() < 0.45:
            return FuzzCase(name, {_FILE: mutator.bytes(self._files[name])})
        rows = self._tables[name]
        try:
            for _ in range(rng.choice((1, 1, 2, 4))):
                rows = rng.choice(_CHANGES)(rows, rng)
            content = _written(rows, rng)
            # Without compression damage is in the values, and not in a block that cannot be decompressed.
            return FuzzCase(name, {_FILE: mutator.bytes(content) if rng.random() < 0.3 else content})
        except (pa.ArrowException, ValueError, TypeError):
            # Not every table can be made or written.
            return FuzzCase(name, {_FILE: mutator.bytes(self._files[name])})

    def check(self, case: FuzzCase) -> None:
        """Files are accepted or set aside; what cannot be read is one line."""
        shutil.rmtree(self._folder, ignore_errors=True)
        content = case.inputs.get(_FILE, self._files[case.base])
        try:
            if case.base == BASELINES.name:
                self._bands(content, case.inputs.get(_MANIFEST))
            else:
                self._land(LANDING[case.base], content)
        except DataError as error:
            one_line(str(error), "the error")

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _land(self, table: Table, content: bytes) -> None:
        landing, partition = Landing(self._folder, self._clock), Partition(table, CLUSTER, _DAY)
        folder = self._folder / partition.folder
        folder.mkdir(parents=True)
        damaged, good = folder / _LANDED, folder / _LANDED.replace("-000001", "-000002")
        damaged.write_bytes(content)
        good.write_bytes(self._files[table.name])
        files = landing.files(partition)
        if good not in files:
            raise PromiseBroken("an intact file does not count")
        landing.covering(table, CLUSTER, int(BEGAN.wall), int(BEGAN.wall) + 3600)
        if damaged in files:
            landing.quarantine_damaged(table, [damaged])
        plan = scan_partition(landing, partition, BEGAN.wall + 2e9).plan
        if plan is not None:
            output_count(plan)

    def _bands(self, content: bytes, document: bytes | None) -> None:
        file, catalog = self._folder / _BANDS, manifest.manifest_path(self._folder, CLUSTER)
        for path, written in ((file, content), (Path(str(catalog)), document or orjson.dumps(self._document))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(written)
        read_bands(self._folder, CLUSTER, _HOUR)


def _rows(table: Table) -> Any:
    """Rows of one minute."""
    at = int(BEGAN.wall * 1e6)
    values: dict[Kind, Callable[[int], Any]] = {
        Kind.STRING: lambda number: ("queue", "orders", "b\u00fccher", "hour-of-week")[number % 4],
        Kind.INT: lambda number: number,
        Kind.FLOAT: lambda number: number / 7,
        Kind.BOOL: lambda number: number % 2 == 0,
        Kind.TIME: lambda number: at + number * 1_000_000,
    }
    columns = [
        pa.array(
            [_HOUR if it.name == "hour_of_week" else values[it.kind](number) for number in range(_ROWS)], field.type
        )
        for it, field in zip(table.columns, arrow_schema(table), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(table))


def _written(rows: Any, rng: Random | None = None) -> bytes:
    options: dict[str, Any] = {"compression": "zstd"}
    if rng is not None:
        options = {
            "compression": rng.choice(("zstd", "snappy", "gzip", "none", "brotli", "lz4")),
            "row_group_size": rng.choice((1, 7, 1000)),
            "write_statistics": rng.random() < 0.7,
            "use_dictionary": rng.random() < 0.5,
            "data_page_version": rng.choice(("1.0", "2.0")),
            "version": rng.choice(("1.0", "2.4", "2.6")),
            "use_deprecated_int96_timestamps": rng.random() < 0.1,
        }
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def _without(rows: Any, rng: Random) -> Any:
    # By its number: another change may have given two columns one name.
    return rows.remove_column(rng.randrange(rows.num_columns)) if rows.num_columns > 1 else rows


def _renamed(rows: Any, rng: Random) -> Any:
    names = list(rows.column_names)
    names[rng.randrange(len(names))] = rng.choice((rng.choice(names), *WORDS[:60]))
    return rows.rename_columns(names)


def _added(rows: Any, rng: Random) -> Any:
    return rows.append_column(rng.choice(WORDS), pa.nulls(rows.num_rows, rng.choice(_TYPES)))


def _recast(rows: Any, rng: Random) -> Any:
    number = rng.randrange(rows.num_columns)
    kind = rng.choice(_TYPES)
    try:
        column = rows.column(number).cast(kind, safe=False)
    except (pa.ArrowException, TypeError):
        column = pa.nulls(rows.num_rows, kind)
    return rows.set_column(number, pa.field(rows.column_names[number], column.type), column)


def _other_values(rows: Any, rng: Random) -> Any:
    number = rng.randrange(rows.num_columns)
    kind, values = rows.schema.field(number).type, rows.column(number).to_pylist()
    for _ in range(rng.choice((1, 1, 5, 40))):
        if values:
            values[rng.randrange(len(values))] = _fresh(kind, rng)
    return rows.set_column(number, pa.field(rows.column_names[number], kind), pa.array(values, kind))


def _fresh(kind: Any, rng: Random) -> Any:
    if rng.random() < 0.2:
        return None
    if pa.types.is_string(kind):
        return rng.choice(WORDS)
    if pa.types.is_floating(kind):
        return float(rng.choice((*NUMBERS[:30], float("nan"), float("inf"))))
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return rng.choice([it for it in NUMBERS if isinstance(it, int) and -(2**63) <= it < 2**63])
    return rng.choice((True, False))


def _repeated(rows: Any, rng: Random) -> Any:
    return pa.concat_tables([rows] * rng.choice((2, 50))) if rows.num_rows < 2000 else rows


def _emptied(rows: Any, rng: Random) -> Any:
    return rows.slice(0, rng.choice((0, 0, 1)))


_CHANGES: tuple[Callable[[Any, Random], Any], ...] = (
    *(_without, _renamed, _added, _recast, _recast, _other_values, _other_values, _other_values, _repeated, _emptied),
)

TARGET = LandingFolders
BENCH = fuzz_bench(
    "landing",
    "damaged landing files, baselines and manifests, as pipeline and exporter read them",
    what="files",
    inputs=100_000,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
