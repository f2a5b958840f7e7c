"""A short digest of rows that does not depend on how they are laid out in files, row groups and buffers."""

import hashlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_BYTES = 8


def digest(rows: pa.Table) -> str:
    """The digest of rows in their order: 16 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=_BYTES)
    state.update(rows.num_rows.to_bytes(8, "little"))
    for name in rows.column_names:
        state.update(f"{name}\0".encode())
        for part in _plain(rows[name]):
            state.update(part)
    return state.hexdigest()


def digest_of(texts: Iterable[str]) -> str:
    """The digest of several texts, such as digests, in their order."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=_BYTES).hexdigest()


def _plain(column: pa.ChunkedArray) -> Iterable[memoryview]:
    """A column as bytes; Arrow leaves the bytes below a null undefined, so they are filled."""
    array = column.combine_chunks()
    yield memoryview(pc.is_valid(array).to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_string(array.type):
        text = pc.fill_null(array, "")
        yield memoryview(pc.binary_length(text).to_numpy(zero_copy_only=False).tobytes())
        yield _letters(text)
        return
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    yield memoryview(pc.fill_null(array, pa.scalar(0).cast(array.type)).to_numpy(zero_copy_only=False).tobytes())


def _letters(text: pa.StringArray) -> memoryview:
    """The UTF-8 bytes of all values, concatenated, straight from Arrow's buffer."""
    _, offsets, letters = text.buffers()
    if letters is None:
        return memoryview(b"")
    edges = memoryview(offsets).cast("i")
    return memoryview(letters)[edges[text.offset] : edges[text.offset + len(text)]]
