"""A long JSON list, decoded piece by piece: what 100,000 objects of it take is never held at once."""

from collections.abc import Iterator
from typing import Any

import orjson

PIECE = 256 * 1024
"""Bytes of one piece; decoded, they take some five times as much."""

_BETWEEN = b"},{"
_TRIES = 20


def is_list(body: bytes | bytearray) -> bool:
    """Whether this begins as a list does."""
    return body[:64].lstrip()[:1] == b"["


def items(body: bytes | bytearray, piece: int = PIECE) -> Iterator[Any]:
    """The items of a list.

    Cuts are made where one object seems to end and another to begin. Within a text or a list of an object that looks
    the same; but what is cut there is not JSON, so the next place is tried, and without one the rest is one piece.

    Raises:
        ValueError: not JSON, which may come to light after some items, or no list.
    """
    if not is_list(body):
        raise ValueError("no list")
    start = body.index(b"[") + 1
    while True:
        found, start = _next(body, start, piece)
        yield from found
        if start < 0:
            return


def _next(body: bytes | bytearray, start: int, piece: int) -> tuple[list[Any], int]:
    """The items of one piece, and where the next begins; -1 after the last."""
    at = start + piece
    for _ in range(_TRIES):
        at = body.find(_BETWEEN, at)
        if at < 0:
            break
        try:
            return orjson.loads(b"[" + body[start : at + 1] + b"]"), at + 2
        except orjson.JSONDecodeError:
            at += 1
    rest: list[Any] = orjson.loads(b"[" + body[start:])
    return rest, -1
