"""The ingest watermark: landing files older than it are in the rollups, so they may be compacted or expire.

It is about files, not rows. It is written only after a whole `run`, or a whole listing of `stream`, and never goes
back.
"""

from functools import partial
from pathlib import Path
from typing import IO

import orjson

from pipeline.storage.durable import atomic_write, remove

NAME = "_taken.json"


def advance_watermark(root: Path, generation: str, until: float) -> None:
    """Record that every landing file that existed at `until`, seconds since 1970, is in the rollups at `root`.

    `generation` names the table versions; a watermark of another generation is ignored.

    Raises:
        DataError: it cannot be written.
    """
    if until > read_watermark(root, generation):
        document = orjson.dumps({"generation": generation, "until": until})
        atomic_write(root / NAME, partial(_write, document))


def read_watermark(root: Path, generation: str) -> float:
    """Seconds since 1970; 0.0 if unknown."""
    try:
        document = orjson.loads((root / NAME).read_bytes())
        return float(document["until"]) if document["generation"] == generation else 0.0
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def reset_watermark(root: Path) -> None:
    """Remove the watermark."""
    remove(root / NAME)


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
