"""What a table is: its columns, what one row tells, and how minutes become hours."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """Types that Arrow, Spark and pandas agree on."""

    STRING = "string"
    INT = "int64"
    FLOAT = "double"
    BOOL = "bool"
    TIME = "timestamp"
    """UTC, microseconds."""


class Merge(StrEnum):
    """How the values of minutes make the value of an hour, and those of hours that of a day; nulls are passed over."""

    SUM = "sum"
    """Of seconds as whole nanoseconds, so that no order of adding tells."""
    MAX = "max"
    MIN = "min"
    LAST = "last"
    """Of the latest row that has a value."""
    SAME = "same"
    """Rows that differ in it are not merged."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; absent values are null, never a stand-in.

    Attributes:
        merge: in rollups, of all columns but the key.
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
        time: the column that says when.
        key: the columns that tell rows apart, within a cluster; () where rows are events.
        version: raised when a column changes its meaning or goes.
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
    """A column of text."""
    return Column(name, Kind.STRING, doc, nullable, merge)


def count(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of whole numbers."""
    return Column(name, Kind.INT, doc, nullable, merge)


def seconds(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of durations."""
    return Column(name, Kind.FLOAT, f"{doc}, seconds", nullable, merge)


def number(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of numbers that are no durations."""
    return Column(name, Kind.FLOAT, doc, nullable, merge)


def flag(name: str, doc: str) -> Column:
    """A column of yes, no, or not told."""
    return Column(name, Kind.BOOL, doc, nullable=True)


def time(name: str, doc: str, *, nullable: bool = False, merge: Merge | None = None) -> Column:
    """A column of moments."""
    return Column(name, Kind.TIME, doc, nullable, merge)


def coarser(minutes: Table, grain: str, suffix: str) -> Table:
    """The table of hours or days that is made of a table of minutes.

    It has the same columns, each merged as it says, and tells the gaps: `minutes` of the hour or day have rows, from
    `first_minute` to `last_minute`.

    Args:
        minutes: the table that it is made of.
        grain: "hour" or "day": also the name of its time column.
        suffix: of its name, in place of `_1m`.
    """
    when = time(grain, f"start of the {grain}")
    known = (
        count("minutes", "minutes that have a row", merge=Merge.SUM),
        time("first_minute", "the first of them", merge=Merge.MIN),
        time("last_minute", "the last of them", merge=Merge.MAX),
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
