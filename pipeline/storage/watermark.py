"""The ingest watermark: landing files older than it are in the rollups, so they may be compacted or expire.

It is about files, not rows. It is written only after a whole `run`, or a whole listing of `stream`, and never goes
back. The jobs of the shards of a fleet have one each.
"""

from functools import partial
from typing import IO, Any

import orjson

from ackscope.object_path import ObjectStorageError, Place
from pipeline.shard import ALL, Shard
from pipeline.storage.durable import atomic_write, remove

NAME = "_taken.json"
# Of the shards of a fleet.
_PATTERN = "_taken-*.json"


def advance_watermark(root: Place, generation: str, until: float, shard: Shard = ALL) -> None:
    """Record that every landing file of these clusters that existed at `until` is in the rollups at `root`.

    `until` is in seconds since 1970. `generation` names the table versions; watermarks of others are ignored.

    Raises:
        DataError: it cannot be written.
    """
    if until > read_watermark(root, generation, shard):
        document: dict[str, object] = {"generation": generation, "until": until}
        if shard.patterns:
            document["clusters"] = shard.patterns
        atomic_write(_path(root, shard), partial(_write, orjson.dumps(document)))


def read_watermark(root: Place, generation: str, shard: Shard = ALL) -> float:
    """The watermark of a shard, seconds since 1970; 0.0 if unknown. That of all clusters counts for each shard."""
    return max(_until(_document(path), generation) for path in (root / NAME, _path(root, shard)))


def cluster_watermark(root: Place, generation: str, cluster: str) -> float:
    """The watermark of a cluster, seconds since 1970: the latest of the shards that it belongs to; 0.0 if unknown."""
    return max(
        _until(document, generation)
        for document in map(_document, [root / NAME, *root.glob(_PATTERN)])
        if cluster in Shard(tuple(document.get("clusters", ())))
    )


def reset_watermark(root: Place, shard: Shard = ALL) -> None:
    """Remove the watermark of a shard; for all clusters, those of all shards.

    The watermark of all clusters stays if other clusters have rollups.
    """
    for path in [_path(root, shard)] if shard.patterns else [root / NAME, *root.glob(_PATTERN)]:
        remove(path)


def _path(root: Place, shard: Shard) -> Place:
    return root / NAME.replace(".", f"{shard.suffix}.")


def _document(path: Place) -> dict[str, Any]:
    """A watermark file; an empty document if it cannot be read."""
    try:
        document: dict[str, Any] = orjson.loads(path.read_bytes())
        return {**document, "until": float(document["until"])}
    except ObjectStorageError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _until(document: dict[str, Any], generation: str) -> float:
    return float(document["until"]) if document.get("generation") == generation else 0.0


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
