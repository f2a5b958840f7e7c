"""Exports of a page: rows as CSV, and file names. Pure."""

from datetime import UTC, datetime

import pandas as pd

# A spreadsheet runs a text that begins with one of these as a formula.
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def csv(rows: pd.DataFrame) -> str:
    """Rows as CSV: times in UTC, missing values empty.

    A text that looks like a formula gets an apostrophe in front, so that a spreadsheet does not run it.
    """
    exported = rows.copy()
    for name in exported.columns:
        column = exported[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            exported[name] = column.dt.tz_convert("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif column.dtype == object:
            exported[name] = column.map(_escape_formula)
    return exported.to_csv(index=False)


def _escape_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_PREFIXES) else value


def file_name(page: str, what: str, at: datetime) -> str:
    """File name without extension: `confirms-heat-2026-03-01T1204Z`; `what` must not contain foreign text."""
    return f"{page}-{what}-{at.astimezone(UTC):%Y-%m-%dT%H%MZ}"
