"""The rollups again, in plain Python and by other means: what Spark must agree with."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from ackscope import latency
from ackscope.tables import ACK_BURSTS, HEARTBEAT, MEASURES, OUTCOMES, PROBE_MESSAGES, PROBE_STEPS, QUEUE_SAMPLES

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


COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
HOLDS = timedelta(seconds=HEARTBEAT)
RECENT = 2 * HOLDS
MINUTE = timedelta(minutes=1)


def queues_1m(samples: list[dict], polls: list[dict]) -> list[dict]:
    """Levels poll by poll, and increases dealt out minute by minute, queue by queue."""
    good = [row for row in polls if row["family"] == "queues" and row["success"]]
    times, wholes = {row["at"] for row in good}, sorted(row["at"] for row in good if row["whole"])
    rows = []
    for (vhost, queue), group in _grouped(
        _unique(samples, QUEUE_SAMPLES.key), lambda row: (row["vhost"], row["queue"])
    ):
        told = sorted(group, key=lambda row: row["at"])
        seen = _seen(told, sorted(times | {row["at"] for row in told}), wholes)
        grown = _grown(told)
        minutes = dict(_grouped(seen, lambda pair: (_minute(pair[0]),)))
        for moment, row in seen:
            still = row["at"] < _minute(moment) and row["details_at"] is None
            for counter in COUNTERS if still else ():
                if row[counter] is not None:
                    grown[_minute(moment), counter] += 0
        for minute in {minute for (minute,) in minutes} | {minute for minute, _ in grown}:
            levels = [row for _, row in minutes.get((minute,), [])]
            rows.append(
                {
                    "minute": minute,
                    "vhost": vhost,
                    "queue": queue,
                    "queue_type": _over(max, told, "queue_type"),
                    "samples": len(levels),
                    "messages_ready_max": _over(max, levels, "messages_ready"),
                    "messages_ready_last": levels[-1]["messages_ready"] if levels else None,
                    "messages_unacked_max": _over(max, levels, "messages_unacked"),
                    "messages_unacked_last": levels[-1]["messages_unacked"] if levels else None,
                    "consumers_min": _over(min, levels, "consumers"),
                    "consumers_last": levels[-1]["consumers"] if levels else None,
                    **{name: grown.get((minute, counter)) for counter, name in COUNTERS.items()},
                }
            )
    return rows


def _seen(told: list[dict], moments: list[datetime], wholes: list[datetime]) -> list[tuple[datetime, dict]]:
    """The row that holds at each moment at which one does."""
    found = []
    for moment in moments:
        row = next((row for row in reversed(told) if row["at"] <= moment), None)
        if row is None or row["gone"] or moment - row["at"] >= HOLDS:
            continue
        if not any(row["at"] < whole <= moment for whole in wholes):
            found.append((moment, row))
    return found


def _grown(told: list[dict]) -> dict[tuple[datetime, str], int]:
    """(minute, counter) -> what it grew by, where that can be told."""
    grown: dict[tuple[datetime, str], int] = defaultdict(int)
    known: dict[str, tuple[datetime, int]] = {}
    for row in told:
        moment = row["details_at"] or row["at"]
        for counter in COUNTERS:
            if row["gone"] or row[counter] is None:
                continue
            for start, before in (known.get(counter), known.get("any")) if known else ():
                if start < moment and row["at"] - start <= RECENT:
                    value = row[counter] - before if row[counter] >= before else row[counter]
                    for minute, share in _dealt(value, start, moment):
                        grown[minute, counter] += share
                    break
        stated = {counter: 0 if row["gone"] else row[counter] for counter in COUNTERS}
        for counter, value in stated.items():
            if value is not None:
                known[counter] = (moment, value)
                known["any"] = (moment, 0)
        for counter in COUNTERS if known else ():
            known.setdefault(counter, (datetime.min.replace(tzinfo=UTC), 0))
    return grown


def _dealt(value: int, start: datetime, end: datetime) -> Iterable[tuple[datetime, int]]:
    """An increase by minutes; whole messages, which add up to it."""
    minute, dealt = _minute(start), 0
    while minute <= end:
        upto = math.floor(value * ((min(end, minute + MINUTE) - start) / (end - start)))
        yield minute, upto - dealt
        minute, dealt = minute + MINUTE, upto


def _over(what: Callable, rows: Iterable[dict], name: str):
    values = [row[name] for row in rows if row[name] is not None]
    return what(values) if values else None


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
