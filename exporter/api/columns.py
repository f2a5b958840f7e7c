"""Object lists as columns, so that 10,000 queues are a few arrays instead of 10,000 objects. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Consumer, Node, Queue
from ackscope.streams import StreamPublisher
from ackscope.topology import Binding, Exchange
from diagnosis.series import last
from diagnosis.window import Window
from exporter.api.query_params import parse_names
from exporter.api.queue_age_columns import AGE_COLUMNS, QueueAges, age_column
from exporter.api.sparkline_series import counter_value

Document = dict[str, Any]

_RATE_SECONDS = 20.0
"""Seconds over which `lately.*` rates are computed."""

_COUNTERS = tuple(field.name for field in fields(MessageStats))


@dataclass(frozen=True, slots=True)
class _List:
    """One endpoint family that is a list of objects.

    Attributes:
        family: field of the snapshot.
        kind: class of the objects.
        objects: value of the part -> objects.
        key: identifies an object across readings; None if there are no `lately.*` columns.
        levels: gauges that also have a `lately.*` column.
        more: columns that are not fields of the objects.
    """

    family: str
    kind: type
    objects: Callable[[Any], Sequence[Any] | None] = lambda value: value
    key: Callable[[Any], Any] | None = None
    levels: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns; counters are `stats.ack`, recent rates `lately.ack`."""
        own = tuple(field.name for field in fields(self.kind) if field.name not in {"stats", "rates", "details_at"})
        has = {field.name for field in fields(self.kind)}
        counters = tuple(f"stats.{name}" for name in _COUNTERS) if "stats" in has else ()
        recent = tuple(f"lately.{name}" for name in (*_COUNTERS, *self.levels)) if self.key else ()
        return (*own, *counters, *recent, *(("details_age",) if "details_at" in has else ()), *self.more)


LISTS: Mapping[str, _List] = {
    "queues": _List(
        "queues",
        Queue,
        key=attrgetter("vhost", "name"),
        levels=("messages_ready", "messages_unacked"),
        more=AGE_COLUMNS,
    ),
    "consumers": _List("consumers", Consumer),
    "channels": _List("channels", Channel, key=attrgetter("name")),
    "connections": _List("connections", Connection),
    "stream_publishers": _List("streams", StreamPublisher, lambda value: value.publishers),
    "nodes": _List("nodes", Node),
    "exchanges": _List("exchanges", Exchange, key=attrgetter("vhost", "name")),
    "bindings": _List("bindings", Binding, lambda value: value.listed),
}


def columns(
    window: Window, name: str, requested: str | None, now: Instant, ages: QueueAges = MappingProxyType({})
) -> Document:
    """Return one list of one cluster as columns.

    Args:
        window: snapshots of the cluster.
        name: one of `LISTS`.
        requested: comma-separated column names; None means all.
        now: time that ages are relative to.
        ages: age of each queue, for `AGE_COLUMNS`. They are as of the list, not of `now`.

    Returns:
        `{"now", "cluster", "list", "age_seconds", "error", "rows", "columns": {name: [value, ...]}}`. `rows` is null
        and all columns are empty if the list is unknown. `lately.*` is the change per second over about the last 30 s,
        negative if a gauge fell, null if unknown.

    Raises:
        UsageError: unknown column.
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
        "columns": {
            column: age_column(objects, column, ages, at)
            if column in kind.more
            else _column(objects, column, at, now, before)
            for column in names
        },
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
    """The state of the list about `_RATE_SECONDS` ago.

    Attributes:
        each: for each object, its earlier state (None if unknown) and the seconds between the readings of its counters.
        seconds: time between the lists.
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
            # Counters may be older than the list that contains them.
            ours, theirs = getattr(it, "details_at", None), getattr(older, "details_at", None)
            seconds = (ours or latest.at).since(theirs or then.at)
        found.append((older, seconds))
    return _Before(found, latest.at.since(then.at))


def _moved(now: Any, before: Any, name: str, seconds: float) -> float | None:
    """Return the change of a gauge per second; None if a value is missing."""
    last_value: float | None = getattr(now, name)
    first_value: float | None = getattr(before, name, None)
    if seconds <= 0 or last_value is None or first_value is None:
        return None
    return (last_value - first_value) / seconds


def _grown(now: Any, before: Any, name: str, seconds: float) -> float | None:
    """Return the increase of a counter per second; None if it is unknown, was not read again, or was reset.

    The broker omits a counter before its first event: if it reports others, a missing one is 0.
    """
    value = None if before is None or seconds <= 0 else counter_value(now.stats, name)
    if value is None:
        return None
    grown = value - (counter_value(before.stats, name) or 0)
    return grown / seconds if grown >= 0 else None
