"""Tables of changes, walked through in plain Python: which row holds when, and what counters grew by."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ackscope.tables import HEARTBEAT

HOLDS = timedelta(seconds=HEARTBEAT)
RECENT = 2 * HOLDS
MINUTE = timedelta(minutes=1)


@dataclass
class Minute:
    """One minute of one object.

    Attributes:
        levels: the row that holds at each poll, in order.
        reported: all rows of the object.
        grown: by the name of its increase; None where it is unknown.
    """

    key: tuple
    minute: datetime
    levels: list[dict]
    known_at: list[dict]
    grown: dict[str, int | None]

    def over(self, what, name):
        """The greatest or the least of a level."""
        return over(what, self.levels, name)

    def last(self, name):
        """A level at the last poll."""
        return self.levels[-1][name] if self.levels else None

    def owner(self, *names):
        """What is the same in all rows of an object."""
        return {name: over(max, self.known_at, name) for name in names}


def minutes(
    samples: list[dict],
    polls: list[dict],
    family: str,
    key: Sequence[str],
    counters: Mapping[str, str],
    *,
    births: bool = False,
) -> Iterable[Minute]:
    """Object by object, poll by poll."""
    good = [row for row in polls if row["family"] == family and row["success"]]
    times, wholes = {row["at"] for row in good}, sorted(row["at"] for row in good if row["whole"])
    objects: dict[tuple, dict[datetime, dict]] = defaultdict(dict)
    for row in samples:
        objects[tuple(row[name] for name in key)][row["at"]] = row
    for name, rows in objects.items():
        known_at = [rows[at] for at in sorted(rows)]
        grown = _grown(known_at, counters, births=births)
        levels: dict[datetime, list[dict]] = defaultdict(list)
        for moment, row in _seen(known_at, sorted(times | set(rows)), wholes):
            levels[_minute(moment)].append(row)
            if row["at"] < _minute(moment) and row.get("details_at") is None:
                for counter in counters:
                    if row[counter] is not None:
                        grown[_minute(moment), counter] += 0
        for minute in {*levels, *(minute for minute, _ in grown)}:
            increases = {called: grown.get((minute, counter)) for counter, called in counters.items()}
            yield Minute(name, minute, levels.get(minute, []), known_at, increases)


def over(what, rows, name):
    """The greatest or smallest known value of a column."""
    values = [row[name] for row in rows if row[name] is not None]
    return what(values) if values else None


def _seen(known_at: list[dict], moments: list[datetime], wholes: list[datetime]) -> list[tuple[datetime, dict]]:
    """The row that holds at each moment at which one does."""
    found = []
    for moment in moments:
        row = next((row for row in reversed(known_at) if row["at"] <= moment), None)
        if row is None or row["gone"] or moment - row["at"] >= HOLDS:
            continue
        if not any(row["at"] < whole <= moment for whole in wholes):
            found.append((moment, row))
    return found


def _grown(known_at: list[dict], counters: Mapping[str, str], *, births: bool) -> dict[tuple[datetime, str], int]:
    """(minute, counter) -> its increase, if known."""
    grown: dict[tuple[datetime, str], int] = defaultdict(int)
    known: dict[str, tuple[datetime, int]] = {}
    for row in known_at:
        moment = row.get("details_at") or row["at"]
        for counter in counters:
            if row["gone"] or row[counter] is None:
                continue
            for start, before in (known.get(counter), known.get("any")) if known else ():
                if start < moment and row["at"] - start <= RECENT:
                    value = row[counter] - before if row[counter] >= before else row[counter]
                    for minute, share in _dealt(value, start, moment):
                        grown[minute, counter] += share
                    break
        if row["gone"] and not births:
            known = {}
            continue
        for counter in counters:
            value = 0 if row["gone"] else row[counter]
            if value is not None:
                known[counter] = (moment, value)
                known["any"] = (moment, 0)
        for counter in counters if known else ():
            known.setdefault(counter, (datetime.min.replace(tzinfo=UTC), 0))
    return grown


def _dealt(value: int, start: datetime, end: datetime) -> Iterable[tuple[datetime, int]]:
    """An increase by minutes; whole messages, which add up to it."""
    minute, dealt = _minute(start), 0
    while minute <= end:
        upto = math.floor(value * ((min(end, minute + MINUTE) - start) / (end - start)))
        yield minute, upto - dealt
        minute, dealt = minute + MINUTE, upto


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
