"""Bounds an answer, and says in it what was cut. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from ackscope.printable import printable

MAX_BYTES = 4000
"""Bytes of an answer at most."""
_LEAST_TEXT = 80
"""Texts are not cut shorter than this many characters, unless nothing else can be cut."""
_SLACK = 24
"""Characters that are cut beyond the excess, for the words about the cut."""

Place = tuple[str | int, ...]


def bounded(document: dict[str, Any], limit: int = MAX_BYTES) -> str:
    """The document as JSON of at most `limit` bytes.

    Lists lose their last items first, the largest list first, and texts their end. `cut` says how many items of which
    list, and how many texts, are missing.
    """
    text = _json(document)
    if len(text) <= limit:
        return text.decode()
    shown, cut = orjson.loads(text), Counter[str]()
    while len(text := _json({**shown, "cut": dict(cut)})) > limit:
        excess = len(text) - limit
        if not (
            _cut_list(shown, excess, cut)
            or _cut_text(shown, excess, cut, _LEAST_TEXT)
            or _cut_text(shown, excess, cut, 8)
        ):
            return _json({"cut": {"answer": 1}}).decode()
    return text.decode()


def _cut_list(document: Any, excess: int, cut: Counter[str]) -> bool:
    """Drop items at the end of the largest list with more than one; whether there was one."""
    lists = [
        (len(_json(value)), path, value)
        for path, value in _walk(document)
        if isinstance(value, list) and len(value) > 1
    ]
    if not lists:
        return False
    _, path, largest = max(lists, key=lambda it: (it[0], -len(it[1])))
    dropped = 0
    while len(largest) > 1 and dropped < excess:
        dropped += len(_json(largest.pop())) + 1
        cut[_name(path)] += 1
    return True


def _cut_text(document: Any, excess: int, cut: Counter[str], least: int) -> bool:
    """Shorten the longest text; whether one was longer than `least`."""
    texts = [
        (len(value), holder, key)
        for _, holder in _walk(document)
        if isinstance(holder, dict | list)
        for key, value in (holder.items() if isinstance(holder, dict) else enumerate(holder))
        if isinstance(value, str) and len(value) > least
    ]
    if not texts:
        return False
    length, holder, key = max(texts, key=lambda it: it[0])
    holder[key] = holder[key][: max(least - 4, length - excess - _SLACK)] + " ..."
    cut["texts"] += 1
    return True


def _walk(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _walk(inner, (*path, place))


def _name(path: Place) -> str:
    return ".".join(word for word in path if isinstance(word, str)) or "answer"


def _json(document: Any) -> bytes:
    return printable(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode()).encode()
