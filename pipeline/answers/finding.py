"""When a finding began, how long it lasts, and how often it comes back."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from ackscope.cli import nearest
from ackscope.clock import iso
from ackscope.ranking import FindingEpisode, display_name
from ackscope.tables import EPISODES
from pipeline.answers.answer import MAX_ROWS, HistoryAnswer
from pipeline.answers.changed import data_coverage
from pipeline.answers.moments import format_duration, format_minute
from pipeline.answers.rollup_reader import RollupReader

FRESH_SECONDS = 900.0
"""Seconds: with older data nobody can say what is there now."""

_WINDOW_HOURS = 3
"""Hours of the day that a finding must keep to, to have a typical time."""

_MIN_DATES, _MIN_WEEKS = 4, 3
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_NEVER = 4102444800.0
"""The year 2100: later than any row."""


def finding(root: Path, cluster: str, rule: str, name: str | None, now: float) -> HistoryAnswer:
    """All episodes of one rule, of one object where its name is given, told by the object."""
    reader = RollupReader.of(root, cluster)
    options = {"rule": rule, "name": name}
    episodes = [FindingEpisode.of(row) for row in reader.rows(EPISODES, 0, _NEVER)]
    mine = [it for it in episodes if it.rule == rule and (name is None or it.name == name)]
    data = data_coverage(reader, min((it.began for it in mine), default=now), now)
    if not episodes:
        return HistoryAnswer("finding", options, data, because="no finding was ever told here: its exporter lands them")
    if not mine:
        known = sorted({it.rule for it in episodes})
        if rule not in known:
            hint = nearest(rule, known)
            return HistoryAnswer("finding", options, data, because=f"no finding {rule!r} was ever told here{hint}")
        names = sorted({it.name for it in episodes if it.rule == rule})
        hint = nearest(name or "", names)
        return HistoryAnswer("finding", options, data, because=f"{rule} was told, but never of {name!r}{hint}")
    rows = recurrences(mine, now, newest_data(reader, now))
    return HistoryAnswer(
        "finding", options, data, tuple(row["told"] for row in rows[:MAX_ROWS]), tuple(rows[:MAX_ROWS])
    )


def newest_data(reader: RollupReader, now: float) -> float | None:
    """The end of the newest minute that there is data of; None where there is none within two days."""
    last = data_coverage(reader, now - 2 * 86400, now).last
    return None if last is None else datetime.fromisoformat(last).timestamp()


def recurrences(episodes: Iterable[FindingEpisode], now: float, data_until: float | None) -> list[dict[str, Any]]:
    """A row for each rule and object, those that are there now first, then those that come most often.

    Args:
        episodes: all of them, in any order.
        now: seconds since 1970.
        fresh: until when there is data; None: there is none.
    """
    by_subject: dict[tuple[str, str, str, str], list[FindingEpisode]] = {}
    for it in sorted(episodes, key=lambda it: it.began):
        by_subject.setdefault((it.rule, *it.subject), []).append(it)
    rows = [_row(mine, now, data_until) for mine in by_subject.values()]
    return sorted(rows, key=lambda row: (row["there"] != "yes", -row["times"], row["rule"], row["name"]))


def _row(mine: Sequence[FindingEpisode], now: float, data_until: float | None) -> dict[str, Any]:
    last = mine[-1]
    lengths = [it.ended - it.began for it in mine if it.ended is not None]
    active = _is_active(last, now, data_until)
    row = {
        "rule": last.rule,
        "severity": last.severity,
        "kind": last.kind,
        "vhost": last.vhost,
        "name": last.name,
        "times": len(mine),
        "first": iso(mine[0].began),
        "began": iso(last.began),
        "began_before": last.found,
        "ended": None if last.ended is None else iso(last.ended),
        "there": active,
        "median_seconds": median(lengths) if lengths else None,
        "longest_seconds": max(lengths, default=None),
        "typical": typical([it.began for it in mine if not it.found]),
    }
    return {**row, "told": _sentence(row, last, now)}


def _is_active(last: FindingEpisode, now: float, data_until: float | None) -> str:
    """yes, no, or cannot tell."""
    if last.ended is not None or not last.lasts:
        return "no"
    return "yes" if data_until is not None and now - data_until <= FRESH_SECONDS else "cannot tell"


def typical(began: Sequence[float]) -> str | None:
    """The hours and the day of the week that it keeps to; None where it keeps to none, or came too rarely to tell."""
    words = []
    moments = [datetime.fromtimestamp(at, UTC) for at in began]
    if len({at.date() for at in moments}) >= _MIN_DATES:
        hours = Counter(at.hour for at in moments)
        first = max(
            range(24), key=lambda hour: (sum(hours[(hour + it) % 24] for it in range(_WINDOW_HOURS)), hours[hour])
        )
        inside = sum(hours[(first + it) % 24] for it in range(_WINDOW_HOURS))
        if inside >= 0.6 * len(moments):
            words.append(f"{first:02d}:00 to {(first + _WINDOW_HOURS) % 24:02d}:00 UTC ({inside} of {len(moments)})")
    if len({at.isocalendar()[:2] for at in moments}) >= _MIN_WEEKS:
        day, number = Counter(at.weekday() for at in moments).most_common(1)[0]
        if number >= 0.6 * len(moments):
            words.append(f"{_DAYS[day]} ({number} of {len(moments)})")
    return ", ".join(words) or None


def _sentence(row: Mapping[str, Any], last: FindingEpisode, now: float) -> str:
    """Who, since when or until when, how often, how long, and when it usually comes."""
    who = f"{row['rule']} of {display_name(row['kind'], row['vhost'], row['name'])}"
    since = f"{format_minute(last.began)} UTC{' or before' if last.found else ''}"
    if row["there"] == "yes":
        state = f"there now, since {since} ({format_duration(now - last.began)})"
    elif row["there"] == "no" and last.ended is None:
        state = f"not there now; last began {since}, and when it ended nobody saw"
    elif last.ended is None:
        state = f"began {since}; whether it is there now cannot be told: no newer data, or nothing was told after it"
    else:
        state = f"not there now; last from {since} to {format_minute(last.ended, last.began)} ({format_duration(last.ended - last.began)})"
    repeats = "the only time" if row["times"] == 1 else f"{row['times']} times since {row['first'][:10]}"
    length = row["median_seconds"]
    half = f", half of them longer than {format_duration(length)}" if length is not None and row["times"] > 1 else ""
    usual = f"; mostly {row['typical']}" if row["typical"] else ""
    return f"{who}: {state}; {repeats}{half}{usual}"
