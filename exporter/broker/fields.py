"""Tolerant decoding, described by tables of (attribute, path, cast).

Brokers send `[]` for an empty object, "undefined" for a number, or nothing at all. An absent value is None. A value
that is present but unusable is None too and is counted as a gap, so that an API change is noticed and never read as 0.
"""

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from ackscope.clock import has_date, stamp

T = TypeVar("T")

Version = tuple[int, int]
"""Major and minor version of RabbitMQ."""

Gaps = Counter[str]
"""Field name -> number of objects with an unusable value in that field."""

Cast = Callable[[Any], Any]
"""Converts a JSON value; raises ValueError if it cannot. Returning None means "not set"."""


class Field(NamedTuple):
    """Source of one attribute.

    Attributes:
        path: keys from the outside in, joined by dots; "" means the name of the attribute.
        until: the first version that no longer fills the field but sends zeros; ignored from then on.
        required: whether absence is a gap, because the field identifies the object.
    """

    attribute: str
    path: str
    cast: Cast
    until: Version | None = None
    required: bool = False


class FieldTable:
    """The fields of one kind of object, prepared for reading many of them."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._plans: dict[Version | None, _Plan] = {}
        self._empty: dict[str, Any] = dict.fromkeys(field.attribute for field in fields)

    def plan(self, version: Version | None) -> "_Plan":
        """Return the fields to read in this version; for an unknown version only those that all versions fill."""
        plan = self._plans.get(version)
        if plan is None:
            plan = self._plans[version] = tuple(
                _Step(attribute, path or attribute, tuple(path.split(".")) if "." in path else (), cast, required)
                for attribute, path, cast, until, required in self.fields
                if until is None or (version is not None and version < until)
            )
        return plan

    def empty(self) -> dict[str, Any]:
        """Return all attributes with the value None."""
        return self._empty.copy()


class _Step(NamedTuple):
    attribute: str
    key: str
    nested: tuple[str, ...]
    cast: Cast
    required: bool


_Plan = tuple[_Step, ...]


def read(table: FieldTable, item: Mapping[str, Any], version: Version | None, gaps: Gaps) -> dict[str, Any]:
    """Read every attribute of the table from one object; None where there is no usable value.

    Args:
        table: the fields.
        item: the object as JSON.
        version: version of the broker; None ignores every field that some version no longer fills.
        gaps: incremented in place.
    """
    values = table.empty()
    for attribute, key, nested, cast, required in table.plan(version):
        try:
            value = _at(item, nested) if nested else item.get(key, _ABSENT)
            if value is not _ABSENT:
                values[attribute] = cast(value)
            elif required:
                gaps[attribute] += 1
        except ValueError:
            gaps[attribute] += 1
    return values


def counts(item: Mapping[str, Any], key: str, gaps: Gaps, *, skip_suffix: str = "") -> dict[str, int]:
    """Read the counters in the object under `key`, by the names of the broker; an unusable one is a gap of `key`.

    Args:
        item: the object that contains the field.
        key: name of the field.
        gaps: incremented in place.
        skip_suffix: names with this suffix are ignored; "" ignores none.
    """
    try:
        inner = mapping(item.get(key, {}))
    except ValueError:
        gaps[key] += 1
        return {}
    found = {}
    for name_, value in inner.items():
        if skip_suffix and name_.endswith(skip_suffix):
            continue
        try:
            found[name_] = count(value)
        except ValueError:
            gaps[key] += 1
    return found


def objects(payload: object, gap: str, gaps: Gaps) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list or of one page; anything else is counted as a gap named `gap`."""
    items = payload.get("items") if isinstance(payload, dict) else payload
    if not isinstance(items, list):
        gaps[gap] += 1
        return
    for item in items:
        if isinstance(item, dict):
            yield item
        else:
            gaps[gap] += 1


def each_once(found: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    """Return the objects, each key once; of duplicates the last.

    A list that changes while the broker makes it, or a proxy in between, may name an object twice. Twice the same
    series would make Prometheus refuse one of them.
    """
    return tuple({key(each): each for each in found}.values())


def by_key(payload: object, gap: str, gaps: Gaps) -> Iterator[tuple[str, Any]]:
    """Yield the answers of several endpoints or nodes by key; anything else is counted as a gap named `gap`."""
    if not isinstance(payload, dict):
        gaps[gap] += 1
        return
    yield from payload.items()


_ABSENT = object()


def _at(item: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path, or _ABSENT. Raises ValueError if a value on the path is not an object."""
    inner: Any = item
    for key in path:
        if inner is _ABSENT:
            break
        if not isinstance(inner, dict):
            raise ValueError(path)  # noqa: TRY004  one kind of error for every unusable value
        inner = inner.get(key, _ABSENT)
    return inner


# ---------------------------------------------------------------- casts

LARGEST = 2**63 - 1
"""The largest number: what a column of a Parquet file can hold. No counter and no size of a broker is larger."""

_NO_VALUE = ("undefined", "unknown")
"""Texts that Erlang sends instead of a missing value."""


def count(value: Any) -> int:
    """A whole number of 0 or more, of at most 63 bits."""
    # Fast path: the checks below are for a JSON number such as 3.0 and for invalid values.
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    whole_number = number(value)
    if whole_number != int(whole_number):
        raise ValueError(value)
    return int(whole_number)


def whole(value: Any) -> int:
    """A whole number of either sign, of at most 63 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        raise ValueError(value)
    return value


def number(value: Any) -> float:
    """A number of 0 or more; one that no broker can have is refused, because it would spoil each sum with it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LARGEST:
        raise ValueError(value)
    return float(value)


def flag(value: Any) -> bool:
    """True or false; other truthy values are rejected."""
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def name(value: Any) -> str:
    """A name chosen by a user: any text except an empty one; "unknown" is a valid name."""
    if not isinstance(value, str) or not value:
        raise ValueError(value)
    return value


def title(value: Any) -> str:
    """Any text, including "", which is the name of the default exchange."""
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return value


def text(value: Any) -> str:
    """A text chosen by the broker, in which "undefined" and "unknown" mean no value."""
    if name(value) in _NO_VALUE:
        raise ValueError(value)
    return str(value)


def interned(cast: Cast) -> Cast:
    """Return the cast with its result interned, for texts that many objects share."""

    def read_interned(value: Any) -> Any:
        word = cast(value)
        return word if word is None else sys.intern(word)

    return read_interned


def names(value: Any) -> tuple[str, ...]:
    """A list of node names, interned; one that is there twice counts once: no series may be twice in `/metrics`."""
    if not isinstance(value, list):
        raise ValueError(value)  # noqa: TRY004  as in _at
    return tuple(dict.fromkeys(sys.intern(name(item)) for item in value))


_MOST_LEVELS = 64
"""Nesting of arguments and policies that is read: JSON of some hundred levels cannot be written again."""


def mapping(value: Any) -> dict[str, Any]:
    """An object; Erlang sends an empty one as `[]` (up to 4.2)."""
    if value == [] and isinstance(value, list):
        return {}
    if not isinstance(value, dict):
        raise ValueError(value)  # noqa: TRY004  as in _at
    if _is_deeper(value.values(), _MOST_LEVELS):
        raise ValueError("nested too deeply")
    return value


def _is_deeper(values: Iterable[Any], levels: int) -> bool:
    return not levels or any(
        _is_deeper(it.values() if isinstance(it, dict) else it, levels - 1)
        for it in values
        if isinstance(it, (dict, list))
    )


def milliseconds(value: Any) -> float:
    """Milliseconds, converted to seconds."""
    return number(value) / 1000


def moment(value: Any) -> float:
    """A timestamp as text, converted to seconds since 1970.

    3.10 to 4.3 send "2026-11-21T08:12:24.339+00:00" (`rabbit_mgmt_format`). Older ones send UTC: "2026-11-21 8:12:24".
    Years before 1970 are not accepted: nothing that a broker dates is older.
    """
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004  as in _at
    date, _, clock = value.replace("T", " ").strip().partition(" ")
    parsed = datetime.fromisoformat(f"{date}T{clock.rjust(8, '0') if clock[1:2] == ':' else clock}")
    seconds = stamp(parsed)
    if not has_date(seconds):
        raise ValueError(value)
    return seconds


def if_set(cast: Cast) -> Cast:
    """Return the cast with null and "" meaning "not set"."""

    def read_if_set(value: Any) -> Any:
        return None if value is None or value == "" else cast(value)

    return read_if_set


def if_defined(cast: Cast) -> Cast:
    """Return the cast with null, "" and "undefined" meaning "not set"."""

    def read_if_defined(value: Any) -> Any:
        return None if value is None or value in ("", "undefined") else cast(value)

    return read_if_defined
