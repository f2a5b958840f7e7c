"""Incremental decoding of a long JSON list, so that 100,000 decoded objects are never in memory together."""

from collections.abc import Iterator
from typing import Any

import orjson

CHUNK_BYTES = 256 * 1024
"""Size of one chunk; decoded it takes about five times as much memory."""

_SEPARATOR = b"},{"
_MAX_CUTS = 20


def is_list(body: bytes | bytearray) -> bool:
    """Whether the document starts like a JSON list."""
    return body[:64].lstrip()[:1] == b"["


def iter_items(body: bytes | bytearray, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Any]:
    """Yield the items of a JSON list, decoded chunk by chunk.

    The list is cut where one object seems to end and the next to start. The same bytes may occur inside a string or a
    nested list, but a chunk cut there is not valid JSON, so the next position is tried. If none fits, the rest is
    decoded as one chunk.

    Raises:
        ValueError: not a JSON list; invalid JSON may be detected only after some items.
    """
    if not is_list(body):
        raise ValueError("not a JSON list")
    start = body.index(b"[") + 1
    while True:
        chunk, start = _next_chunk(body, start, chunk_bytes)
        yield from chunk
        if start < 0:
            return


def _next_chunk(body: bytes | bytearray, start: int, chunk_bytes: int) -> tuple[list[Any], int]:
    """Return the items of one chunk and the start of the next chunk; -1 after the last."""
    end = start + chunk_bytes
    for _ in range(_MAX_CUTS):
        end = body.find(_SEPARATOR, end)
        if end < 0:
            break
        try:
            return orjson.loads(b"[" + body[start : end + 1] + b"]"), end + 2
        except orjson.JSONDecodeError:
            end += 1
    rest: list[Any] = orjson.loads(b"[" + body[start:])
    return rest, -1
