"""Converts Python values to Arrow arrays through their buffers.

With the first list `pyarrow.array` would import pandas if it is installed, which takes 60 MB and seconds. Layout:
https://arrow.apache.org/docs/format/Columnar.html
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from ackscope.tables import Kind
from ackscope.tables.arrow import ARROW_TYPES


def column(kind: Kind, values: Sequence[Any]) -> pa.Array:
    """Return the values as one array; None becomes null, times are microseconds since 1970.

    Raises:
        TypeError, ValueError, OverflowError, AttributeError: a value has the wrong type.
    """
    nulls = values.count(None)
    valid = pa.py_buffer(_bits([value is not None for value in values])) if nulls else None
    buffers = _FORMS[kind](values if not nulls else [_EMPTY[kind] if value is None else value for value in values])
    return pa.Array.from_buffers(ARROW_TYPES[kind], len(values), [valid, *map(pa.py_buffer, buffers)], null_count=nulls)


def _numbers(code: str) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda values: [array(code, values)]


def _texts(values: Sequence[str]) -> list[Any]:
    encoded = [value.encode() for value in values]
    return [array("i", accumulate(map(len, encoded), initial=0)), b"".join(encoded)]


def _flags(values: Sequence[bool]) -> list[Any]:
    return [_bits(values)]


def _bits(flags: Sequence[bool]) -> bytes:
    """Pack flags into a bitmap, least significant bit first."""
    digits = "".join(["1" if flag else "0" for flag in reversed(flags)])
    return int(digits or "0", 2).to_bytes(len(flags) // 8 + 1, "little")


_EMPTY = {Kind.STRING: "", Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False, Kind.TIME: 0}
_FORMS: dict[Kind, Callable[[Sequence[Any]], list[Any]]] = {
    Kind.STRING: _texts,
    Kind.INT: _numbers("q"),
    Kind.FLOAT: _numbers("d"),
    Kind.BOOL: _flags,
    Kind.TIME: _numbers("q"),
}
