"""What the analyses remember of a cluster: which minutes they have seen, and every shift that may be one.

One file a cluster, `<rollups>/_analysis/<cluster>.parquet`, replaced atomically. It can be removed at any time: then
all is analysed again. An hour whose minutes expired stays as it was judged.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.manifest import Manifest
from ackscope.tables import CHANGES, HOURS, Table
from ackscope.tables.arrow import arrow_schema
from ackscope.tables.contract import flag
from pipeline.analysis.series import FAMILIES
from pipeline.schema import mismatch
from pipeline.storage.durable import atomic_write

CANDIDATES = Table(
    name="candidates",
    grain="one shift that may be one of `changes`",
    time=CHANGES.time,
    key=(*CHANGES.key, "soon"),
    columns=(
        *CHANGES.columns,
        flag("sure", "it stands out far enough to be told; others only tell what is usual"),
        flag("back", "it goes back to where the level was in the hours before"),
        flag("soon", "the quick look found it; the same shift may be there once more, found by the patient one"),
    ),
)

VERSION = 2
"""Raised when shifts or bands are found in another way: all is then analysed again."""

_KEY = b"ackscope"
_TABLES = sorted({family.source.name for family in FAMILIES})

Hours = Mapping[int, str]
"""By hour since 1970 a digest of its rows."""


@dataclass(frozen=True, slots=True)
class AnalysisState:
    """What is remembered.

    Attributes:
        shifted: the hours in which shifts were looked for, as they were then.
        banded: the hours that bands were made of, as they were then.
        candidates: rows of `CANDIDATES`.
    """

    shifted: Hours = field(default_factory=dict)
    banded: Hours = field(default_factory=dict)
    candidates: pa.Table = field(default_factory=lambda: arrow_schema(CANDIDATES).empty_table())


def state_path(root: Path, cluster: str) -> Path:
    """The file of a cluster."""
    return root / "_analysis" / f"{quote(cluster, safe='')}.parquet"


def read(root: Path, cluster: str) -> AnalysisState:
    """What is remembered; nothing where it cannot be read, or is of another version."""
    try:
        rows = pq.ParquetFile(state_path(root, cluster)).read()
        document = orjson.loads((rows.schema.metadata or {})[_KEY])
        if document["version"] != VERSION or mismatch(CANDIDATES, rows.schema) is not None:
            return AnalysisState()
        shifted, banded = ({int(hour): text for hour, text in document[name].items()} for name in ("shifted", "banded"))
        return AnalysisState(shifted, banded, _with_all_columns(rows.replace_schema_metadata(None)))
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, AttributeError, ValueError):
        return AnalysisState()


def write(root: Path, cluster: str, state: AnalysisState) -> None:
    """Replace it.

    Raises:
        DataError: the disk does not take it.
    """
    document = {
        "version": VERSION,
        **{
            name: {str(hour): text for hour, text in hours.items()}
            for name, hours in (("shifted", state.shifted), ("banded", state.banded))
        },
    }
    rows = state.candidates.replace_schema_metadata({_KEY: orjson.dumps(document)})
    atomic_write(state_path(root, cluster), partial(_write, rows))


def hours_now(manifest: Manifest) -> dict[int, str]:
    """The hours that have minutes of any measure, each with a digest of them."""
    texts: dict[int, list[str]] = {}
    for name in _TABLES:
        for it in manifest.files_for(name):
            for hour, digest in it.parts.items():
                texts.setdefault(int(hour), []).append(f"{name}:{digest}")
    return {
        hour: hashlib.blake2b("\0".join(found).encode(), digest_size=8).hexdigest() for hour, found in texts.items()
    }


def hours_with_rollups(manifest: Manifest) -> set[int]:
    """The hours of which at least rows of hours are there, as far as whole days tell."""
    return {
        int(day) + hour
        for name in _TABLES
        for it in manifest.files_for(HOURS[name].name)
        for day in it.parts
        for hour in range(24)
    }


def changed(then: Hours, now: Hours) -> set[int]:
    """The hours that are new, or not as they were; those that expired are as they were."""
    return {hour for hour, digest in now.items() if then.get(hour) != digest}


def with_hours(state: AnalysisState, *, shifted: Hours | None = None, banded: Hours | None = None) -> AnalysisState:
    """With these hours, too."""
    return replace(
        state,
        shifted={**state.shifted, **(shifted or {})},
        banded={**state.banded, **(banded or {})},
    )


def only(hours: Hours, chosen: Iterable[int]) -> dict[int, str]:
    """Some of them."""
    return {hour: hours[hour] for hour in chosen if hour in hours}


def _with_all_columns(rows: pa.Table) -> pa.Table:
    """With columns that were not told yet when it was written: null."""
    schema = arrow_schema(CANDIDATES)
    for name in schema.names:
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.nulls(len(rows), schema.field(name).type))
    return rows.select(schema.names).cast(schema)


def _write(rows: pa.Table, file: IO[bytes]) -> None:
    pq.write_table(rows, file, compression="zstd")
