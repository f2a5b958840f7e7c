"""Decoding as data: tables of (attribute, path, cast), read tolerantly.

Brokers send `[]` for an empty object, "undefined" for a number, or nothing at all. What is absent is None; what is
there and unusable is None too, and counted as a gap, so that a change of the API is seen and never read as a zero.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Version = tuple[int, int]
"""Major and minor version of RabbitMQ."""

Gaps = Counter[str]
"""Field name -> number of objects that held something unusable there."""

Cast = Callable[[Any], Any]
"""Makes a value of a JSON one; raises ValueError for what it cannot use. None is an answer: not set."""


class Field(NamedTuple):
    """Where one attribute comes from.

    Attributes:
        path: keys from the outside in, joined by dots; the attribute's own name where it is "".
        until: the first version that no longer fills it (it sends zeros there); withheld from then on.
        required: its absence is a gap: the object cannot be told from others without it.
    """

    attribute: str
    path: str
    cast: Cast
    until: Version | None = None
    required: bool = False


class Table:
    """The fields of one kind of object, made ready for reading many of them."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._plans: dict[Version | None, _Plan] = {}
        self._nothing: dict[str, Any] = dict.fromkeys(field.attribute for field in fields)

    def plan(self, version: Version | None) -> "_Plan":
        """What is left to do for each object of this version; an unknown one withholds what any no longer fills."""
        found = self._plans.get(version)
        if found is None:
            found = self._plans[version] = tuple(
                _Step(attribute, path or attribute, tuple(path.split(".")) if "." in path else (), cast, required)
                for attribute, path, cast, until, required in self.fields
                if until is None or (version is not None and version < until)
            )
        return found

    def nothing(self) -> dict[str, Any]:
        """Every attribute, each of them absent."""
        return self._nothing.copy()


class _Step(NamedTuple):
    attribute: str
    key: str
    way: tuple[str, ...]
    cast: Cast
    required: bool


_Plan = tuple[_Step, ...]


def read(table: Table, item: Mapping[str, Any], version: Version | None, gaps: Gaps) -> dict[str, Any]:
    """Read one object: every attribute of the table, None where there is nothing usable.

    Args:
        table: its fields.
        item: the object as JSON.
        version: of the broker; unknown withholds what any version no longer fills.
        gaps: counted up in place.
    """
    values = table.nothing()
    for attribute, key, way, cast, required in table.plan(version):
        try:
            value = _at(item, way) if way else item.get(key, _ABSENT)
            if value is not _ABSENT:
                values[attribute] = cast(value)
            elif required:
                gaps[attribute] += 1
        except ValueError:
            gaps[attribute] += 1
    return values


def counts(item: Mapping[str, Any], what: str, gaps: Gaps, *, skip: str = "") -> dict[str, int]:
    """An object of counts under a key, by the broker's own names; a part that is none is a gap of `what`.

    Args:
        item: the object that holds it.
        what: its key.
        gaps: counted up in place.
        skip: names that end so are something else; "" skips none.
    """
    try:
        inner = mapping(item.get(what, {}))
    except ValueError:
        gaps[what] += 1
        return {}
    found = {}
    for key, value in inner.items():
        if skip and key.endswith(skip):
            continue
        try:
            found[key] = count(value)
        except ValueError:
            gaps[what] += 1
    return found


def objects(payload: Any, what: str, gaps: Gaps) -> Iterator[dict[str, Any]]:
    """The objects of a list (or of one page of it); anything else in it is counted as a gap."""
    items = payload.get("items") if isinstance(payload, dict) else payload
    if not isinstance(items, list):
        gaps[what] += 1
        return
    for item in items:
        if isinstance(item, dict):
            yield item
        else:
            gaps[what] += 1


def of_paths(payload: Any, what: str, gaps: Gaps) -> Iterator[tuple[str, Any]]:
    """The answers of several endpoints or nodes, each with its key; anything else is counted as a gap."""
    if not isinstance(payload, dict):
        gaps[what] += 1
        return
    yield from payload.items()


def version_of(text: Any) -> Version | None:
    """Major and minor of "4.3.6"; None for anything else."""
    pieces = text.split(".") if isinstance(text, str) else []
    if len(pieces) < 2 or not (pieces[0].isdecimal() and pieces[1].isdecimal()):
        return None
    return (int(pieces[0]), int(pieces[1]))


_ABSENT = object()


def _at(item: Mapping[str, Any], way: tuple[str, ...]) -> Any:
    """What is at a path; _ABSENT where nothing is; ValueError where something else than an object is on the way."""
    inner: Any = item
    for key in way:
        if inner is _ABSENT:
            break
        if not isinstance(inner, dict):
            raise ValueError(way)  # noqa: TRY004  one kind of error for all that is unusable
        inner = inner.get(key, _ABSENT)
    return inner


# ---------------------------------------------------------------- casts

_UNSAID = ("undefined", "unknown")
"""What Erlang sends where it has no value."""


def count(value: Any) -> int:
    """A whole number, zero or more."""
    # Nearly always: what follows is for what JSON writes as 3.0, and for what is none.
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(value)
    if value != int(value):
        raise ValueError(value)
    return int(value)


def whole(value: Any) -> int:
    """A whole number of either sign."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def number(value: Any) -> float:
    """A number, zero or more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(value)
    return float(value)


def flag(value: Any) -> bool:
    """True or false, and nothing that merely looks so."""
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def name(value: Any) -> str:
    """A name that people gave: any text but an empty one; "unknown" is a fine name."""
    if not isinstance(value, str) or not value:
        raise ValueError(value)
    return value


def title(value: Any) -> str:
    """Any text, an empty one too: that is the name of the default exchange."""
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def text(value: Any) -> str:
    """A word of the broker's own, where "undefined" and "unknown" mean that it has none."""
    if name(value) in _UNSAID:
        raise ValueError(value)
    return str(value)


def shared(cast: Cast) -> Cast:
    """The same for words that many objects have in common: they are held once."""

    def read_shared(value: Any) -> Any:
        word = cast(value)
        return word if word is None else sys.intern(word)

    return read_shared


def names(value: Any) -> tuple[str, ...]:
    """A list of names, each held once however many objects have it: they are those of nodes."""
    if not isinstance(value, list):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return tuple(sys.intern(name(item)) for item in value)


def mapping(value: Any) -> dict[str, Any]:
    """An object; `[]` is how Erlang spells an empty one (up to 4.2)."""
    if value == [] and isinstance(value, list):
        return {}
    if not isinstance(value, dict):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def milliseconds(value: Any) -> float:
    """Milliseconds as seconds."""
    return number(value) / 1000


def moment(value: Any) -> float:
    """A time as text, as seconds since 1970.

    3.10 to 4.3 send "2026-11-21T08:12:24.339+00:00" (`rabbit_mgmt_format`); "2026-11-21 8:12:24" of older ones is UTC.
    """
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004  as in _at
    date, _, clock = value.replace("T", " ").strip().partition(" ")
    parsed = datetime.fromisoformat(f"{date}T{clock.rjust(8, '0') if clock[1:2] == ':' else clock}")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def if_set(cast: Cast) -> Cast:
    """The same, where null and "" are the broker's way to say: not set."""

    def read_if_set(value: Any) -> Any:
        return None if value is None or value == "" else cast(value)

    return read_if_set


def if_said(cast: Cast) -> Cast:
    """The same, where "undefined" too is the broker's way to say: not set."""

    def read_if_said(value: Any) -> Any:
        return None if value is None or value in ("", "undefined") else cast(value)

    return read_if_said
