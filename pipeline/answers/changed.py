"""What changed around a moment, the likeliest cause first."""

from collections.abc import Iterable
from typing import Any

from ackscope.clock import iso
from ackscope.object_path import Place
from ackscope.ranking import (
    ChangedObject,
    ChangePoint,
    FindingEpisode,
    describe_change,
    describe_parts,
    display_name,
    rank_changes,
    repeat_suffix,
)
from ackscope.tables import BASELINES, CHANGES, EPISODES, HOURS, OUTCOMES_1M, POLLS_1M, QUEUES_1M
from pipeline.answers.answer import MAX_ROWS, DataCoverage, HistoryAnswer, coverage
from pipeline.answers.moments import format_duration, format_minute
from pipeline.answers.rollup_reader import RollupReader

_DAY = 86400.0


def changed(root: Place, cluster: str, moment: float, around: float, now: float) -> HistoryAnswer:
    """The objects that changed within `around` seconds of a moment, the likeliest cause first."""
    reader = RollupReader.of(root, cluster)
    options = {"at": iso(moment), "around_seconds": around}
    start, end = moment - around, min(moment + around, now)
    data = data_coverage(reader, start, end)
    if not (reader.has(CHANGES) or reader.has(BASELINES)):
        return HistoryAnswer("changed", options, data, because=_NO_CHANGES)
    if data.first is None:
        return HistoryAnswer(
            "changed",
            options,
            data,
            because="no data for this time range: the exporter was not running, or the data has expired",
        )
    changed_objects = rank_changes(
        map(ChangePoint.of, reader.rows(CHANGES, start, end)),
        map(FindingEpisode.of, reader.rows(EPISODES, start, end)),
        moment,
        around,
    )
    sentences = [_sentence(it, changed_objects) for it in changed_objects[:MAX_ROWS]]
    nothing = "nothing changed beyond the usual variation, and no finding began"
    rows = tuple(_row(place, it) for place, it in enumerate(changed_objects[:MAX_ROWS], start=1))
    return HistoryAnswer(
        "changed", options, data, tuple(sentences or [nothing]), rows, more={"all": len(changed_objects)}
    )


def data_coverage(reader: RollupReader, start: float, end: float) -> DataCoverage:
    """The data coverage, from the smallest table of hours that has rows: polls, else probes, else queues."""
    for table in (POLLS_1M, OUTCOMES_1M, QUEUES_1M):
        hourly = HOURS[table.name]
        if not reader.has(hourly):
            continue
        by_hour: dict[Any, dict[str, Any]] = {}
        for row in reader.rows(hourly, start // 3600 * 3600, end, ("hour", "minutes", "first_minute", "last_minute")):
            mine = by_hour.setdefault(row["hour"], row)
            mine["minutes"] = max(mine["minutes"], row["minutes"])
            mine["first_minute"] = min(mine["first_minute"], row["first_minute"])
            mine["last_minute"] = max(mine["last_minute"], row["last_minute"])
        return coverage(start, end, by_hour.values())
    return DataCoverage(iso(start), iso(end))


_NO_CHANGES = "changes were not analysed yet: run `ackscope pipeline analyse`; `stream` does it every hour"


def _row(place: int, it: ChangedObject) -> dict[str, Any]:
    return {
        "place": place,
        "wave": it.wave,
        "at": iso(it.at),
        "kind": it.kind,
        "vhost": it.vhost,
        "name": it.name,
        "strength": it.strength,
        "shifts": [_shift(one) for one in it.shifts],
        "parts": [{"kind": one.kind, "name": one.name, **_shift(one)} for one in it.parts],
        "findings": [{"at": iso(one.began), "rule": one.rule, "severity": one.severity} for one in it.findings],
    }


def _shift(one: ChangePoint) -> dict[str, Any]:
    return {
        "at": iso(one.at),
        "measure": one.measure,
        "before": one.before,
        "after": one.after,
        "score": one.score,
        "minutes": one.minutes,
    }


def _sentence(it: ChangedObject, changed_objects: Iterable[ChangedObject]) -> str:
    """One line, such as `12:04 UTC: queue 'orders' in vhost '/': publish rate fell from 120/s to 0/s`."""
    first = min(other.at for other in changed_objects if other.wave == it.wave)
    later = f", {format_duration(it.at - first)} after the first" if it.at - first >= 60 else ""
    parts = [f"{describe_change(one)}{_minute(one.at, it.at)}" for one in it.shifts]
    parts += [
        f"finding {one.rule} ({one.severity}){_minute(one.began, it.at)}{repeat_suffix(times)}"
        for one, times in it.first_findings()
    ]
    parts += [f"{what}{_minute(at, it.at)}" for at, what in describe_parts(it)]
    return f"{format_minute(it.at)} UTC{later}: {display_name(it.kind, it.vhost, it.name)}: {'; '.join(parts)}"


def _minute(at: float, first: float) -> str:
    return f" at {format_minute(at, first)}" if at - first >= 60 else ""
