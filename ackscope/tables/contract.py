"""The declaration of a table: its columns, the meaning of a row, and how minutes merge into hours."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """Column types that Arrow, Spark and pandas share."""

    STRING = "string"
    INT = "int64"
    FLOAT = "double"
    BOOL = "bool"
    TIME = "timestamp"
    """UTC, microseconds."""


class Merge(StrEnum):
    """How values of minutes merge into an hour, and those of hours into a day; nulls are skipped."""

    SUM = "sum"
    """Seconds are added as whole nanoseconds, so that the result does not depend on the order."""
    MAX = "max"
    MIN = "min"
    LAST = "last"
    """The value of the latest row that has one."""
    SAME = "same"
    """Rows with different values are not merged."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; absent values are null, never a placeholder.

    Attributes:
        merge: merge rule; in rollups, for all columns except the key.
    """

    name: str
    kind: Kind
    doc: str
    nullable: bool = False
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        grain: what one row is, in words.
        time: the time column.
        key: the columns that identify a row within a cluster; () if rows are events.
        version: increased when a column changes its meaning or is removed.
    """

    name: str
    grain: str
    time: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(column.name for column in self.columns)


PARTITIONS = ("cluster", "date")


def text(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A text column."""
    return Column(name, Kind.STRING, doc, nullable, merge)


def count(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """An integer column."""
    return Column(name, Kind.INT, doc, nullable, merge)


def seconds(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of durations."""
    return Column(name, Kind.FLOAT, f"{doc}, seconds", nullable, merge)


def number(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of numbers other than durations."""
    return Column(name, Kind.FLOAT, doc, nullable, merge)


def flag(name: str, doc: str) -> Column:
    """A nullable boolean column."""
    return Column(name, Kind.BOOL, doc, nullable=True)


def time(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A timestamp column."""
    return Column(name, Kind.TIME, doc, nullable, merge)


def coarser(minutes: Table, grain: str, suffix: str) -> Table:
    """The table of hours or days that is downsampled from a table of minutes.

    It has the same columns, each merged by its rule, and shows gaps: `minutes` of the hour or day have rows, from
    `first_minute` to `last_minute`.

    Args:
        minutes: the table of minutes.
        grain: "hour" or "day"; also the name of its time column.
        suffix: replaces `_1m` in its name.
    """
    when = time(grain, f"start of the {grain}")
    known = (
        count("minutes", "minutes that have a row", merge=Merge.SUM),
        time("first_minute", "the first minute that has a row", merge=Merge.MIN),
        time("last_minute", "the last minute that has a row", merge=Merge.MAX),
    )
    rest = tuple(column for column in minutes.columns if column.name != minutes.time)
    return replace(
        minutes,
        name=minutes.name.removesuffix("_1m") + suffix,
        grain=minutes.grain.replace("one minute of", f"one {grain} of", 1),
        time=grain,
        key=tuple(grain if name == minutes.time else name for name in minutes.key),
        columns=(when, *rest, *known),
    )
