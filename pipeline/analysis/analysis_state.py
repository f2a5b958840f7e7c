"""State of the analyses of a cluster: which minutes were analysed, and every candidate change point.

One file per cluster, `<rollups>/_analysis/<cluster>.parquet`, replaced atomically. It can be removed at any time: then
everything is analysed again. An hour whose minutes expired keeps its results.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.arrow_files import parquet_file
from ackscope.manifest import Manifest
from ackscope.object_path import Place
from ackscope.tables import CHANGES, HOURS, Table
from ackscope.tables.arrow import arrow_schema
from ackscope.tables.contract import flag
from pipeline.analysis.series import FAMILIES
from pipeline.schema import mismatch
from pipeline.storage.durable import atomic_write

CANDIDATES = Table(
    name="candidates",
    grain="one candidate for `changes`",
    time=CHANGES.time,
    key=(*CHANGES.key, "soon"),
    columns=(
        *CHANGES.columns,
        flag("sure", "it stands out far enough to be reported; others only show what is usual"),
        flag("back", "it returns to the level of the hours before"),
        flag("soon", "found by the fast detector; the same shift may be there again, found by the slow one"),
    ),
)

# Increased when shifts or bands are computed differently: then everything is analysed again.
VERSION = 2

_KEY = b"ackscope"
_TABLES = sorted({family.source.name for family in FAMILIES})

# By hour since 1970, a digest of its rows.
Hours = Mapping[int, str]


@dataclass(frozen=True, slots=True)
class AnalysisState:
    """The stored state.

    Attributes:
        shifted: hours searched for shifts, with their digest then.
        banded: hours used for bands, with their digest then.
        candidates: rows of `CANDIDATES`.
    """

    shifted: Hours = field(default_factory=dict)
    banded: Hours = field(default_factory=dict)
    candidates: pa.Table = field(default_factory=lambda: arrow_schema(CANDIDATES).empty_table())


def state_path(root: Place, cluster: str) -> Place:
    """The state file of a cluster."""
    return root / "_analysis" / f"{quote(cluster, safe='')}.parquet"


def read(root: Place, cluster: str) -> AnalysisState:
    """The stored state; an empty one if it cannot be read, or has another version."""
    try:
        rows = parquet_file(state_path(root, cluster)).read()
        document = orjson.loads((rows.schema.metadata or {})[_KEY])
        if document["version"] != VERSION or mismatch(CANDIDATES, rows.schema) is not None:
            return AnalysisState()
        shifted, banded = ({int(hour): text for hour, text in document[name].items()} for name in ("shifted", "banded"))
        return AnalysisState(shifted, banded, _with_all_columns(rows.replace_schema_metadata(None)))
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, AttributeError, ValueError):
        return AnalysisState()


def write(root: Place, cluster: str, state: AnalysisState) -> None:
    """Replace the state file.

    Raises:
        DataError: the disk refuses it.
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
    """The hours that have minutes of any measure, each with a digest of these minutes."""
    texts: dict[int, list[str]] = {}
    for name in _TABLES:
        for it in manifest.files_for(name):
            for hour, digest in it.parts.items():
                texts.setdefault(int(hour), []).append(f"{name}:{digest}")
    return {
        hour: hashlib.blake2b("\0".join(found).encode(), digest_size=8).hexdigest() for hour, found in texts.items()
    }


def hours_with_rollups(manifest: Manifest) -> set[int]:
    """The hours of days for which the tables of hours have rows."""
    return {
        int(day) + hour
        for name in _TABLES
        for it in manifest.files_for(HOURS[name].name)
        for day in it.parts
        for hour in range(24)
    }


def changed(then: Hours, now: Hours) -> set[int]:
    """The hours that are new or changed; expired hours are unchanged."""
    return {hour for hour, digest in now.items() if then.get(hour) != digest}


def with_hours(state: AnalysisState, *, shifted: Hours | None = None, banded: Hours | None = None) -> AnalysisState:
    """The state with these hours added."""
    return replace(
        state,
        shifted={**state.shifted, **(shifted or {})},
        banded={**state.banded, **(banded or {})},
    )


def only(hours: Hours, chosen: Iterable[int]) -> dict[int, str]:
    """A subset of hours."""
    return {hour: hours[hour] for hour in chosen if hour in hours}


def _with_all_columns(rows: pa.Table) -> pa.Table:
    """Add columns that did not exist when the file was written, as null."""
    schema = arrow_schema(CANDIDATES)
    for name in schema.names:
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.nulls(len(rows), schema.field(name).type))
    return rows.select(schema.names).cast(schema)


def _write(rows: pa.Table, file: IO[bytes]) -> None:
    pq.write_table(rows, file, compression="zstd")
