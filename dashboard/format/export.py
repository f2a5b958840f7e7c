"""What is taken along from a page: rows as CSV, and names for files. Pure."""

from datetime import UTC, datetime

import pandas as pd

_ACTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for a formula when a text begins with it."""


def csv(rows: pd.DataFrame) -> str:
    """Rows as CSV: times in UTC, absent as nothing, and no text of others that a spreadsheet would run.

    A text that begins like a formula gets an apostrophe before it, which a spreadsheet shows as text.
    """
    told = rows.copy()
    for name in told.columns:
        column = told[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            told[name] = column.dt.tz_convert("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif column.dtype == object:
            told[name] = column.map(_harmless)
    return told.to_csv(index=False)


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_ACTS) else value


def file_name(page: str, what: str, at: datetime) -> str:
    """Name of a file without its ending: `confirms-heat-2026-03-01T1204Z`; `what` holds our own words only."""
    return f"{page}-{what}-{at.astimezone(UTC):%Y-%m-%dT%H%MZ}"
