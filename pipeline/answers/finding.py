"""When a finding began, how long it lasts, and how often it recurs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from ackscope.cli import nearest
from ackscope.clock import iso
from ackscope.object_path import Place
from ackscope.ranking import FindingEpisode, display_name
from ackscope.tables import EPISODES
from pipeline.answers.answer import MAX_ROWS, HistoryAnswer
from pipeline.answers.changed import data_coverage
from pipeline.answers.moments import format_duration, format_minute
from pipeline.answers.rollup_reader import RollupReader

# With older data it is unknown what is active now.
FRESH_SECONDS = 900.0

# Width of the part of the day, in hours, in which a recurring finding usually begins.
_WINDOW_HOURS = 3

_MIN_DATES, _MIN_WEEKS = 4, 3
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
# The year 2100: later than any row.
_NEVER = 4102444800.0


def finding(root: Place, cluster: str, rule: str, name: str | None, now: float) -> HistoryAnswer:
    """All episodes of one rule, grouped by object; limited to one object if `name` is given."""
    reader = RollupReader.of(root, cluster)
    options = {"rule": rule, "name": name}
    episodes = [FindingEpisode.of(row) for row in reader.rows(EPISODES, 0, _NEVER)]
    mine = [it for it in episodes if it.rule == rule and (name is None or it.name == name)]
    data = data_coverage(reader, min((it.began for it in mine), default=now), now)
    if not episodes:
        return HistoryAnswer("finding", options, data, because="no findings in the history; the exporter lands them")
    if not mine:
        known = sorted({it.rule for it in episodes})
        if rule not in known:
            hint = nearest(rule, known)
            return HistoryAnswer("finding", options, data, because=f"no finding {rule!r} in the history{hint}")
        names = sorted({it.name for it in episodes if it.rule == rule})
        hint = nearest(name or "", names)
        return HistoryAnswer("finding", options, data, because=f"no finding {rule} about {name!r} in the history{hint}")
    rows = recurrences(mine, now, newest_data(reader, now))
    return HistoryAnswer(
        "finding", options, data, tuple(row["told"] for row in rows[:MAX_ROWS]), tuple(rows[:MAX_ROWS])
    )


def newest_data(reader: RollupReader, now: float) -> float | None:
    """The end of the newest minute with data; None without any within two days."""
    last = data_coverage(reader, now - 2 * 86400, now).last
    return None if last is None else datetime.fromisoformat(last).timestamp()


def recurrences(episodes: Iterable[FindingEpisode], now: float, data_until: float | None) -> list[dict[str, Any]]:
    """One row per rule and object, active findings first, then the most frequent.

    Args:
        episodes: all of them, in any order.
        now: seconds since 1970.
        data_until: end of the data, seconds since 1970; None without data.
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
    """Returns "yes", "no" or "cannot tell"."""
    if last.ended is not None or not last.lasts:
        return "no"
    return "yes" if data_until is not None and now - data_until <= FRESH_SECONDS else "cannot tell"


def typical(began: Sequence[float]) -> str | None:
    """The usual hours and day of the week; None if there are none, or too few episodes."""
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
    """Object, start or end, frequency, duration, and the usual time."""
    who = f"{row['rule']} of {display_name(row['kind'], row['vhost'], row['name'])}"
    since = f"{format_minute(last.began)} UTC{' or before' if last.found else ''}"
    if row["there"] == "yes":
        state = f"active since {since} ({format_duration(now - last.began)})"
    elif row["there"] == "no" and last.ended is None:
        state = f"not active; last began {since}, end unknown"
    elif last.ended is None:
        state = f"began {since}; unknown whether it is active now: no newer data, or it was not reported again"
    else:
        until = f"{format_minute(last.ended, last.began)} ({format_duration(last.ended - last.began)})"
        state = f"not active; last from {since} to {until}"
    repeats = "once" if row["times"] == 1 else f"{row['times']} times since {row['first'][:10]}"
    length = row["median_seconds"]
    half = f", half of them longer than {format_duration(length)}" if length is not None and row["times"] > 1 else ""
    usual = f"; mostly {row['typical']}" if row["typical"] else ""
    return f"{who}: {state}; {repeats}{half}{usual}"
