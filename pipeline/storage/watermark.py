"""Up to when the landing files are in the rollups: what came before may be put together, or expire.

The mark speaks of files, not of rows: every landing file that was there at that moment was rolled up. It is written
only after a whole `run`, or a whole look of `stream`, and never goes back.
"""

from functools import partial
from pathlib import Path
from typing import IO

import orjson

from pipeline.storage.durable import atomic_write, remove

NAME = "_taken.json"


def advance_watermark(root: Path, generation: str, until: float) -> None:
    """Every landing file that was there at `until`, seconds since 1970, is in the rollups at `root`.

    `generation` names the versions of the tables: a mark made with others tells nothing.

    Raises:
        DataError: it cannot be written.
    """
    if until > read_watermark(root, generation):
        document = orjson.dumps({"generation": generation, "until": until})
        atomic_write(root / NAME, partial(_write, document))


def read_watermark(root: Path, generation: str) -> float:
    """Seconds since 1970; 0.0 where nothing is known."""
    try:
        document = orjson.loads((root / NAME).read_bytes())
        return float(document["until"]) if document["generation"] == generation else 0.0
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def reset_watermark(root: Path) -> None:
    """Nothing is known any more."""
    remove(root / NAME)


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
