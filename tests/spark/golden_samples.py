"""The rollups of the broker's own word, in plain Python: queues, channels, consumers, nodes, readings."""

from collections import defaultdict

from tests.spark.golden_counter_rates import minutes, over

QUEUE_COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
CHANNEL_COUNTERS = QUEUE_COUNTERS | {"confirm": "confirmed"}


def queues_1m(samples: list[dict], polls: list[dict]) -> list[dict]:
    """Levels poll by poll, and increases dealt out minute by minute, queue by queue."""
    return [
        {
            "minute": it.minute,
            "vhost": it.key[0],
            "queue": it.key[1],
            "samples": len(it.levels),
            "messages_ready_max": it.over(max, "messages_ready"),
            "messages_ready_last": it.last("messages_ready"),
            "messages_unacked_max": it.over(max, "messages_unacked"),
            "messages_unacked_last": it.last("messages_unacked"),
            "consumers_min": it.over(min, "consumers"),
            "consumers_last": it.last("consumers"),
            "busy": None if it.grown["published"] is None else int(it.grown["published"] > 0),
        }
        | it.owner("queue_type")
        | it.grown
        for it in minutes(samples, polls, "queues", ("vhost", "queue"), QUEUE_COUNTERS, births=True)
    ]


def channels_1m(samples: list[dict], polls: list[dict]) -> list[dict]:
    """Followed channels; a ceiling is that of all consumers together."""
    rows = []
    for it in minutes(samples, polls, "channels", ("channel",), CHANNEL_COUNTERS):
        limits = [_limit(row) for row in it.levels]
        full = [limit and (row["messages_unacked"] or 0) >= limit for row, limit in zip(it.levels, limits, strict=True)]
        rows.append(
            {
                "minute": it.minute,
                "channel": it.key[0],
                "samples": len(it.levels),
                "limited": sum(limit > 0 for limit in limits),
                "at_ceiling": sum(map(bool, full)),
                "prefetch_last": it.last("prefetch_count"),
                "unacked_max": it.over(max, "messages_unacked"),
                "unacked_last": it.last("messages_unacked"),
                "unconfirmed_max": it.over(max, "messages_unconfirmed"),
                "unconfirmed_last": it.last("messages_unconfirmed"),
            }
            | it.owner("connection", "vhost", "user", "node")
            | it.grown
        )
    return rows


def _limit(row):
    consumers = 1 if row["consumers"] is None else row["consumers"]
    return (row["prefetch_count"] or 0) * consumers


def consumers_1m(samples: list[dict], polls: list[dict]) -> list[dict]:
    """Followed consumers."""
    return [
        dict(zip(("vhost", "queue", "tag", "channel"), it.key, strict=True))
        | {
            "minute": it.minute,
            "samples": len(it.levels),
            "inactive": sum(row["active"] is False for row in it.levels),
            "automatic": sum(row["ack_required"] is False for row in it.levels),
            "prefetch_last": it.last("prefetch_count"),
        }
        | it.owner("connection", "user", "node")
        for it in minutes(samples, polls, "consumers", ("vhost", "queue", "tag", "channel"), {})
    ]


def nodes_1m(samples: list[dict]) -> list[dict]:
    """Sample by sample."""
    rows = []
    for (minute, node), group in _by_minute(samples, "node"):
        latest = group[-1]
        rows.append(
            {
                "minute": minute,
                "node": node,
                "samples": len(group),
                "down": sum(row["running"] is False for row in group),
                "drained": sum(row["being_drained"] is True for row in group),
                "mem_alarms": sum(row["mem_alarm"] is True for row in group),
                "disk_alarms": sum(row["disk_free_alarm"] is True for row in group),
                "disk_free_min": over(min, group, "disk_free"),
                "uptime_min": over(min, group, "uptime_seconds"),
            }
            | {
                f"{name}_max": over(max, group, name)
                for name in ("partitions", "mem_used", "fd_used", "sockets_used", "proc_used", "run_queue")
            }
            | {f"{name}_last": latest[name] for name in ("mem_used", "mem_limit", "disk_free", "disk_free_limit")}
            | {f"{name}_total_last": latest[f"{name}_total"] for name in ("fd", "sockets", "proc")}
        )
    return rows


def polls_1m(polls: list[dict]) -> list[dict]:
    """Reading by reading."""
    rows = []
    for (minute, family), group in _by_minute(polls, "family"):
        good = [row for row in group if row["success"]]
        took = [row["took"] for row in good if row["took"] is not None]
        gaps = [row["gaps"] for row in good if row["gaps"] is not None]
        rows.append(
            {
                "minute": minute,
                "family": family,
                "reads": len(good),
                "failures": len(group) - len(good),
                "took_sum": sum(round(value * 1e9) for value in took) / 1e9,
                "took_max": max(took, default=None),
                "age_max": over(max, group, "age"),
                "objects_last": good[-1]["objects"] if good else None,
                "gaps": sum(gaps) if gaps else None,
                "wholes": sum(row["whole"] is True for row in good),
            }
        )
    return rows


def _by_minute(rows, name):
    groups = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row["at"]):
        groups[row["at"].replace(second=0, microsecond=0), row[name]][row["at"]] = row
    return [(key, list(group.values())) for key, group in groups.items()]
