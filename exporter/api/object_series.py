"""Recent series of single objects: queues, channels and nodes, for charts and sparklines. Pure."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import orjson

from ackscope.clock import Instant
from ackscope.errors import UsageError
from ackscope.snapshot import Channel, Node, Queue
from diagnosis.window import TRAIL_HORIZON, Series, Timestamped, Window
from exporter.api.query_params import parse_names
from exporter.api.sparkline_series import (
    REACH,
    STEP,
    Point,
    by_details_time,
    counter_value,
    gauge_points,
    queue_series,
    rate_points,
    recent_readings,
)

Document = dict[str, Any]

MAX_OBJECTS = 300
"""Maximum number of objects of one request."""

QUEUE_COUNTERS = {"publish": "publish", "deliver": "deliver_get", "ack": "ack", "redeliver": "redeliver"}
"""Series of a queue -> counter."""

_QUEUE_LEVELS = {"ready": "messages_ready", "unacked": "messages_unacked", "consumers": "consumers"}
_CHANNEL_LEVELS = {"unacked": "messages_unacked", "prefetch": "prefetch_count"}
_CHANNEL_STEP = 4.0
"""Minimum seconds between points of a channel, of which only a few readings are held."""
_CHANNEL_COUNTERS = {"deliver": "deliver_get", "ack": "ack", "publish": "publish"}
_TOTALS = (("ready", "messages_ready"), ("unacked", "messages_unacked"))
_CLUSTER_COUNTERS = {"publish": "publish", "confirm": "confirm", **QUEUE_COUNTERS}
_FAMILIES = {"channel": "channels", "node": "nodes"}
"""Kind of subject -> list that has it."""
_BYTES = ("mem_used", "mem_limit", "disk_free", "disk_free_limit")
_NODE_LEVELS = (
    *_BYTES,
    *("fd_used", "fd_total", "sockets_used", "sockets_total"),
    *("proc_used", "proc_total", "run_queue", "processors"),
)


def series_line(name: str, unit: str, points: Sequence[Point]) -> Document:
    """A series as a document: its name, its unit (rate, messages, bytes or ""), its latest value, and its points."""
    return {"name": name, "unit": unit, "value": points[-1][1] if points else None, "line": points}


def queue_lines(series: Series[Queue], now: Instant) -> list[Document]:
    """Every series of one queue from its readings; none without a reading."""
    if not series:
        return []
    levels = [
        series_line(name, "" if name == "consumers" else "messages", gauge_points(series, attrgetter(field), now))
        for name, field in _QUEUE_LEVELS.items()
    ]
    return [*levels, *_rates(by_details_time(series), QUEUE_COUNTERS, now)]


def _rates(series: Series[Any], counters: dict[str, str], now: Instant, step: float = STEP) -> list[Document]:
    def count(field: str) -> Callable[[Any], int | None]:
        return lambda it: counter_value(it.stats, field)

    return [series_line(name, "rate", rate_points(series, count(field), now, step)) for name, field in counters.items()]


def _channel_lines(series: Series[Channel], now: Instant) -> list[Document]:
    if not series:
        return []
    levels = [
        series_line(name, "messages", gauge_points(series, attrgetter(field), now, step=_CHANNEL_STEP))
        for name, field in _CHANNEL_LEVELS.items()
    ]
    return [*levels, *_rates(series, _CHANNEL_COUNTERS, now, _CHANNEL_STEP)]


def _node_lines(series: Series[Node], now: Instant, reach: float = TRAIL_HORIZON) -> list[Document]:
    lines = [
        series_line(
            name,
            "bytes" if name in _BYTES else "",
            gauge_points(series, attrgetter(name), now, reach),
        )
        for name in _NODE_LEVELS
    ]
    return [line for line in lines if any(value is not None for _, value in line["line"])]


def object_series(window: Window, name: str, requested: str | None, now: Instant, lines: str | None = None) -> Document:
    """Series of some objects of one list.

    Args:
        window: snapshots of the cluster.
        name: one of `SERIES_LISTS`.
        requested: JSON: a list of `[virtual host, name]` for queues, of names for channels and nodes.
        now: time that points are relative to.
        lines: comma-separated names of series; None means all.

    Returns:
        `{"now", "cluster", "list", "objects": [{"vhost", "name", "lines"}]}`, in the requested order; a line is
        `{"name", "unit", "value", "line": [[seconds ago, value]]}`. Unknown objects have no lines. Queues and channels
        cover what the window holds (up to 10 and 3 minutes), nodes two hours.

    Raises:
        UsageError: the objects cannot be read, or are too many.
    """
    keys = list(_keys(name, requested))
    wanted = parse_names("lines", lines, _LINES[name])
    made = _queues(window, keys, now) if name == "queues" else _named(window, name, keys, now)
    return {
        "now": now.iso(),
        "cluster": window.cluster,
        "list": name,
        "objects": [
            {"vhost": vhost, "name": object_name, "lines": [line for line in found if line["name"] in wanted]}
            for (vhost, object_name), found in zip(keys, made, strict=True)
        ],
    }


def cluster_series(window: Window, now: Instant) -> list[Document]:
    """The broker's own totals of the whole cluster in the last 30 minutes; none without a reading."""
    series = recent_readings(window, "overview")
    if not series:
        return []
    levels = [series_line(name, "messages", gauge_points(series, attrgetter(field), now)) for name, field in _TOTALS]
    return [*_rates(series, _CLUSTER_COUNTERS, now), *levels]


def subject_series(window: Window, now: Instant, kind: str, vhost: str | None, name: str) -> list[Document]:
    """Recent series of one subject: those of `object_series`, of a node for 30 minutes, or those of the cluster.

    An unknown object and another kind of subject have none.
    """
    if kind == "cluster":
        return cluster_series(window, now)
    if kind == "queue":
        return queue_lines(queue_series(window, vhost or "", name), now)
    family = _FAMILIES.get(kind)
    return [] if family is None else next(_named(window, family, [(None, name)], now, REACH))


def _keys(name: str, requested: str | None) -> Iterator[tuple[str | None, str]]:
    wanted = "a JSON list of [virtual host, name]" if name == "queues" else "a JSON list of names"
    try:
        found = orjson.loads(requested or "")
    except orjson.JSONDecodeError:
        raise UsageError(f"objects: must be {wanted}") from None
    if not isinstance(found, list) or len(found) > MAX_OBJECTS:
        raise UsageError(f"objects: must be {wanted}, with at most {MAX_OBJECTS}")
    for item in found:
        pair = item if name == "queues" else [None, item]
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(it, str | None) for it in pair):
            raise UsageError(f"objects: must be {wanted}")
        yield (pair[0], str(pair[1]))


def _queues(window: Window, keys: Sequence[tuple[str | None, str]], now: Instant) -> Iterator[list[Document]]:
    readings = window.readings("queues")
    places = {queue.key: place for place, queue in enumerate(readings[-1].value)} if readings else {}
    for vhost, name in keys:
        place = places.get((vhost or "", name))
        yield [] if place is None else queue_lines(queue_series(window, vhost, name, place), now)


def _named(
    window: Window, family: str, keys: Sequence[tuple[str | None, str]], now: Instant, reach: float = TRAIL_HORIZON
) -> Iterator[list[Document]]:
    """Series of objects that their name identifies; those of nodes reach back `reach` seconds."""
    wanted = {name for _, name in keys}
    found: dict[str, list[Timestamped[Any]]] = {name: [] for name in wanted}
    for seen in recent_readings(window, family) if family == "nodes" else window.readings(family):
        for item in seen.value:
            if item.name in wanted:
                found[item.name].append(Timestamped(seen.at, item))
    for _, name in keys:
        series = tuple(found[name])
        yield _node_lines(series, now, reach) if family == "nodes" else _channel_lines(series, now)


_LINES = {
    "queues": (*_QUEUE_LEVELS, *QUEUE_COUNTERS),
    "channels": (*_CHANNEL_LEVELS, *_CHANNEL_COUNTERS),
    "nodes": _NODE_LEVELS,
}
SERIES_LISTS = tuple(_LINES)
