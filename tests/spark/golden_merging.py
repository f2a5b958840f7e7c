"""Minutes to hours again, in plain Python: what Spark must agree with."""

from collections import defaultdict
from datetime import datetime

from ackscope.tables import Kind, Merge, Table


def merged(rows: list[dict], source: Table, target: Table) -> list[dict]:
    """Row by row, in the order of their time."""
    groups: dict[tuple, list[dict]] = defaultdict(list)
    same = [it.name for it in target.columns if it.merge is Merge.SAME]
    names = [target.time, *(name for name in target.key if name != target.time), *same]
    for row in sorted(rows, key=lambda row: row[source.time]):
        groups[start(row[source.time], target), *(row[name] for name in names[1:])].append(row)
    return [
        dict(zip(names, key, strict=True))
        | {it.name: _value(it, group, source) for it in target.columns if it.name not in names}
        for key, group in groups.items()
    ]


def start(moment: datetime, target: Table) -> datetime:
    """Of the hour or day that a moment lies in."""
    hour = moment.replace(minute=0, second=0, microsecond=0)
    return hour if target.time == "hour" else hour.replace(hour=0)


def _value(column, group, source):
    if column.name not in source.names:
        return {
            "minutes": len(group),
            "first_minute": group[0][source.time],
            "last_minute": group[-1][source.time],
        }[column.name]
    values = [row[column.name] for row in group if row[column.name] is not None]
    if not values:
        return None
    if column.merge is Merge.LAST:
        return values[-1]
    if column.merge is Merge.SUM and column.kind is Kind.FLOAT:
        return sum(round(value * 1e9) for value in values) / 1e9
    return {Merge.SUM: sum, Merge.MAX: max, Merge.MIN: min}[column.merge](values)
