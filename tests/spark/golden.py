"""The rollups of probes again, in plain Python and by other means: what Spark must agree with."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from ackscope import latency
from ackscope.tables import ACK_BURSTS, MEASURES, OUTCOMES, PROBE_MESSAGES, PROBE_STEPS

STREAM = ("probe", "stream", "queue_type", "vhost", "node")


def latency_1m(messages: list[dict]) -> list[dict]:
    """Every measure of every minute, message by message."""
    found: dict[tuple, list[float]] = defaultdict(list)
    for row in _unique(messages, PROBE_MESSAGES.key):
        for measure in MEASURES:
            if row[measure] is not None:
                stream = tuple(row[name] for name in (*STREAM, "delivery_mode"))
                found[_minute(row["intended_at"]), *stream, measure].append(row[measure])
    rows = []
    for (minute, probe, stream, queue_type, vhost, node, mode, measure), values in found.items():
        buckets = [0] * latency.BUCKETS
        for value in values:
            buckets[latency.bucket(value)] += 1
        rows.append(
            {
                "minute": minute,
                "probe": probe,
                "stream": stream,
                "queue_type": queue_type,
                "vhost": vhost,
                "node": node,
                "delivery_mode": mode,
                "measure": measure,
                "bounds": latency.BOUNDS_VERSION,
                "count": len(values),
                "sum": sum(round(value * 1e9) for value in values) / 1e9,
                "max": max(values),
                **dict(zip(latency.COLUMNS, buckets, strict=True)),
            }
        )
    return rows


def outcomes_1m(messages: list[dict]) -> list[dict]:
    """Counts by outcome."""
    rows = []
    unique = _unique(messages, PROBE_MESSAGES.key)
    for key, group in _grouped(unique, lambda row: (_minute(row["intended_at"]), *_values(row, "delivery_mode"))):
        outcomes = [row["outcome"] for row in group]
        rows.append(
            dict(zip(("minute", *STREAM, "delivery_mode"), key, strict=True))
            | {"messages": len(group)}
            | {name: outcomes.count(name) for name in OUTCOMES}
            | {
                "redelivered": sum(bool(row["redelivered"]) for row in group),
                "duplicates": sum(max(0, (row["deliveries"] or 0) - 1) for row in group),
                "out_of_order": sum(bool(row["out_of_order"]) for row in group),
                "missing": sum(row["outcome"] == "acked" and row["deliveries"] == 0 for row in group),
            }
        )
    return rows


def bursts_1m(bursts: list[dict]) -> list[dict]:
    """Sizes and intervals."""
    rows = []
    unique = _unique(bursts, ACK_BURSTS.names)
    for key, group in _grouped(unique, lambda row: (_minute(row["at"]), *_values(row))):
        intervals = [row["interval"] for row in group if row["interval"] is not None]
        rows.append(
            dict(zip(("minute", *STREAM), key, strict=True))
            | {
                "bursts": len(group),
                "frames": sum(row["frames"] for row in group),
                "multiple_frames": sum(row["multiple_frames"] for row in group),
                "messages": sum(row["messages"] for row in group),
                "messages_max": max(row["messages"] for row in group),
                "interval_sum": sum(round(value * 1e9) for value in intervals) / 1e9,
                "interval_count": len(intervals),
                "interval_max": max(intervals, default=None),
            }
        )
    return rows


STEP = ("probe", "stream", "vhost", "node", "step")


def steps_1m(steps: list[dict]) -> list[dict]:
    """Attempts, failures, and durations of the steps that ended well."""
    rows = []
    unique = _unique(steps, PROBE_STEPS.names)
    for key, group in _grouped(unique, lambda row: (_minute(row["at"]), *(row[name] for name in STEP))):
        ended = [row["seconds"] for row in group if row["ok"] and row["seconds"] is not None]
        buckets = [0] * latency.BUCKETS
        for value in ended:
            buckets[latency.bucket(value)] += 1
        rows.append(
            dict(zip(("minute", *STEP), key, strict=True))
            | {
                "bounds": latency.BOUNDS_VERSION,
                "attempts": len(group),
                "failures": sum(not row["ok"] for row in group),
                "count": len(ended),
                "sum": sum(round(value * 1e9) for value in ended) / 1e9,
                "max": max(ended, default=None),
                **dict(zip(latency.COLUMNS, buckets, strict=True)),
            }
        )
    return rows


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _values(row: dict, *more: str) -> tuple:
    return tuple(row[name] for name in (*STREAM, *more))


def _grouped(rows: Iterable[dict], key: Callable[[dict], tuple]) -> list[tuple[tuple, list[dict]]]:
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return list(groups.items())


def _unique(rows: list[dict], key: Iterable[str]) -> list[dict]:
    return list({tuple(row[name] for name in key): row for row in rows}.values())
