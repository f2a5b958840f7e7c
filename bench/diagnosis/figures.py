"""Results of many faults: goals, and a table in 80 columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.exporter.goals import Goal
from bench.tables import median, table
from lab.brokers import minor

Row = Mapping[str, Any]

_NAMED, _ONCE = 0.95, 0.90
_MIDDLE, _WORST = 20.0, 60.0


def goals(rows: Sequence[Row]) -> list[Goal]:
    """Return the goals over the faults that were injected, and that the version tells enough of to name them."""
    injected = [row for row in rows if not row["failed"]]
    tried = [row for row in injected if not row.get("open")]
    silent = [row for row in injected if row.get("open") and row["seconds"] is None and not row["unsure"]]
    named = [row["seconds"] for row in tried if row["seconds"] is not None]
    asked = [row for row in tried if row["once"] is not None]
    return [
        Goal("faults not named, as a share", _share(len(tried) - len(named), len(tried)), 1 - _NAMED),
        Goal("seconds to be named, the middle", median(named), _MIDDLE),
        Goal("seconds to be named, the worst", max(named, default=None), _WORST),
        Goal(
            "faults that one look of 15 s does not name, as a share",
            _share(sum(not row["once"] for row in asked), len(asked)),
            1 - _ONCE,
        ),
        *(
            [Goal("faults neither named nor left open with a reason", len(silent), 0)]
            if len(tried) < len(injected)
            else []
        ),
    ]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def rows_table(rows: Sequence[Row], found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a row per fault, then unexpected results, then the goals."""
    shown = [
        (
            row["fault"],
            minor(row["broker"]) + (f" x{row['nodes']}" if row["nodes"] > 1 else ""),
            "-" if row["seconds"] is None else f"{row['seconds']:.0f}",
            row["severity"] or ("open" if row.get("unsure") else "-"),
            {True: "yes", False: "NO", None: "-"}[row["once"]],
            "-" if row["cleared"] is None else f"{row['cleared']:.0f}",
            str(len(row["others"])),
        )
        for row in rows
        if not row["failed"]
    ]
    text = table(("", "broker", "named s", "as", "once", "ends s", "more"), shown)
    note = (
        "named s: from being in effect to being named; once: by ackscope diagnose in one look; ends s: from its end to "
        "the end of the finding; more: findings that were not expected; open: the rule says why it cannot tell."
    )
    text += ["", note]
    tried = [row for row in rows if not row["failed"]]
    text += ["", f"{sum(row['seconds'] is not None for row in tried)} of {len(tried)} named"]
    text += [
        f"clients named, {row['fault']} ({row['broker']}): {', '.join(row['clients'])}"
        for row in tried
        if row.get("clients")
    ]
    text += [f"open, {row['fault']} ({row['broker']}): {row['unsure']}" for row in tried if row.get("unsure")]
    text += [f"not injected: {row['fault']} ({row['broker']}): {row['failed']}" for row in rows if row["failed"]]
    text += [
        f"also said, {row['fault']} ({row['broker']}): {'; '.join(row['others'])}" for row in rows if row["others"]
    ]
    text += [f"under another cause: {row['fault']} ({row['broker']}): {row['under']}" for row in rows if row["under"]]
    text += _peers(tried)
    return [*text, "", *(Goal(**goal).line() for goal in found)]


def _peers(rows: Sequence[Row]) -> list[str]:
    """Summarize the alerts of other publishers' rules on the same faults."""
    names = sorted({name for row in rows for name in row["peers"]})
    if not names:
        return []
    shown = [
        (
            name,
            f"{sum(name in row['peers'] for row in rows)} of {len(rows)}",
            f"{sum(name in row['named_by'] for row in rows)} of {len(rows)}",
            f"{median([row['peers_wait'][name] for row in rows if name in row['peers']]) or 0:.0f}",
        )
        for name in names
    ]
    return ["", *table(("rules of others", "alerted", "cause named", "waits s"), shown)]
