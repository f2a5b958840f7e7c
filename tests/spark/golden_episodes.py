"""Episodes again, event by event in plain Python."""

from collections import defaultdict
from datetime import timedelta

FINDING = ("rule", "kind", "vhost", "name")
SETTLING = timedelta(minutes=15)
URGENCY = ("critical", "warning", "info")


def episodes(events, polls):
    """What was open, and when it was closed."""
    looks = sorted({row["minute"] for row in polls if row["family"] == "queues" and row["wholes"]})
    newest = max([row["minute"] for row in polls] + [row["at"] for row in events])
    groups = defaultdict(dict)
    for row in events:
        groups[tuple(row[name] for name in FINDING)][row["at"]] = row
    done = []
    for key, group in groups.items():
        now = None
        for at in sorted(group):
            row = group[at]
            if now and row["event"] in {"found", "began"}:
                look = _after(looks, now["last_told"])
                unasked = look is None or look > at
                if _missed(look, at) or (row["event"] == "began" and unasked):
                    now = None
            if now is None:
                now = dict(zip(FINDING, key, strict=True)) | {"began": at, "found": row["event"] != "began"}
                now |= {"ended": None, "lasts": False, "severity": row["severity"], "node": None, "summary": None}
                done.append(now)
            now["last_told"] = at
            now["severity"] = min(now["severity"], row["severity"], key=URGENCY.index)
            now |= {name: row[name] for name in ("node", "summary") if row[name] is not None}
            if row["event"] == "ended":
                now["ended"] = at
                now = None
        if now:
            now["lasts"] = not _missed(_after(looks, now["last_told"]), newest)
    return done


def _after(looks, moment):
    return next((look for look in looks if look > moment), None)


def _missed(look, until):
    return look is not None and look + SETTLING < until
