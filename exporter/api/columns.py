"""A list of the broker's objects as columns: a page of 10,000 queues is a few arrays, not 10,000 objects. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Consumer, Node, Queue
from ackscope.topology import Binding, Exchange
from diagnosis.series import last
from diagnosis.window import Window
from exporter.api.query_params import parse_names
from exporter.api.sparkline_series import counter_value

Document = dict[str, Any]

_RATE_SECONDS = 20.0
"""Seconds."""

_COUNTERS = tuple(field.name for field in fields(MessageStats))


@dataclass(frozen=True, slots=True)
class _List:
    """One family that is a list.

    Attributes:
        family: part of the snapshot that holds it.
        kind: what its objects are.
        objects: them, out of the part's value.
        key: what tells them apart from one reading to the next; None where nobody asks how their counters grew.
        levels: what else is told of as `lately.*`: it rises and falls, and is as old as the list.
    """

    family: str
    kind: type
    objects: Callable[[Any], Sequence[Any] | None] = lambda value: value
    key: Callable[[Any], Any] | None = None
    levels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that it can have; counters as `stats.ack`, and how fast they grew lately as `lately.ack`."""
        own = tuple(field.name for field in fields(self.kind) if field.name not in {"stats", "rates", "details_at"})
        has = {field.name for field in fields(self.kind)}
        counters = tuple(f"stats.{name}" for name in _COUNTERS) if "stats" in has else ()
        lately = tuple(f"lately.{name}" for name in (*_COUNTERS, *self.levels)) if self.key else ()
        return (*own, *counters, *lately, *(("details_age",) if "details_at" in has else ()))


LISTS: Mapping[str, _List] = {
    "queues": _List("queues", Queue, key=attrgetter("vhost", "name"), levels=("messages_ready", "messages_unacked")),
    "consumers": _List("consumers", Consumer),
    "channels": _List("channels", Channel, key=attrgetter("name")),
    "connections": _List("connections", Connection),
    "nodes": _List("nodes", Node),
    "exchanges": _List("exchanges", Exchange),
    "bindings": _List("bindings", Binding, lambda value: value.listed),
}


def columns(window: Window, name: str, requested: str | None, now: Instant) -> Document:
    """One list of one cluster.

    Args:
        window: what is known of the cluster.
        name: one of `LISTS`.
        asked: names of columns with commas between; all where it is None.
        now: for ages.

    Returns:
        `{"now", "cluster", "list", "age_seconds", "error", "rows", "columns": {name: [value, ...]}}`; `rows` is null
        where the list is not known, and then every column is empty. `lately.*` is a second, over the last half minute
        or so, and below zero where a level fell; null where it cannot be told.

    Raises:
        UsageError: a column is not known.
    """
    kind = LISTS[name]
    names = parse_names("columns", requested, kind.names)
    part = window.latest.parts[kind.family] if window.latest else None
    value = None if part is None or part.value is None else kind.objects(part.value)
    objects = value or ()
    before = _before(window, kind, objects) if any(column.startswith("lately.") for column in names) else _Before()
    at = part.at if part else None
    return {
        "now": now.iso(),
        "cluster": window.cluster,
        "list": name,
        "age_seconds": part.age(now) if part else None,
        "error": part.error if part else None,
        "rows": None if value is None else len(objects),
        "columns": {column: _column(objects, column, at, now, before) for column in names},
    }


def _column(objects: Sequence[Any], name: str, at: Instant | None, now: Instant, before: "_Before") -> list[Any]:
    kind, _, grows = name.partition(".")
    if kind == "lately" and grows in _COUNTERS:
        return [_grown(it, older, grows, seconds) for it, (older, seconds) in zip(objects, before.each, strict=True)]
    if kind == "lately":
        return [_moved(it, older, grows, before.seconds) for it, (older, _) in zip(objects, before.each, strict=True)]
    if name == "details_age":
        return [None if (seen := it.details_at or at) is None else now.since(seen) for it in objects]
    return list(map(attrgetter(name), objects))


@dataclass(frozen=True, slots=True)
class _Before:
    """The list as it was about `_LATELY` seconds before.

    Attributes:
        each: object -> as it was, and the seconds between the readings of its counters; None where that is not known.
        seconds: between the lists.
    """

    each: Sequence[tuple[Any, float]] = ()
    seconds: float = 0.0


def _before(window: Window, kind: _List, objects: Sequence[Any]) -> _Before:
    readings = window.readings(kind.family)
    if kind.key is None or len(readings) < 2:
        return _Before([(None, 0.0)] * len(objects))
    latest = readings[-1]
    then = last(readings, _RATE_SECONDS)[0]
    known = {kind.key(it): it for it in kind.objects(then.value) or ()}
    found = []
    for it in objects:
        older = known.get(kind.key(it))
        seconds = 0.0
        if older is not None:
            # Counters may be older than the list that holds them.
            ours, theirs = getattr(it, "details_at", None), getattr(older, "details_at", None)
            seconds = (ours or latest.at).since(theirs or then.at)
        found.append((older, seconds))
    return _Before(found, latest.at.since(then.at))


def _moved(now: Any, before: Any, name: str, seconds: float) -> float | None:
    """Of a level, a second; None where it is not known of both readings."""
    last_value: float | None = getattr(now, name)
    first_value: float | None = getattr(before, name, None)
    if seconds <= 0 or last_value is None or first_value is None:
        return None
    return (last_value - first_value) / seconds


def _grown(now: Any, before: Any, name: str, seconds: float) -> float | None:
    """A second; None where the counters are not known, are the same reading, or began anew meanwhile.

    The broker leaves a counter out before its first event: where it tells others, such a one stands at 0.
    """
    value = None if before is None or seconds <= 0 else counter_value(now.stats, name)
    if value is None:
        return None
    grown = value - (counter_value(before.stats, name) or 0)
    return grown / seconds if grown >= 0 else None
