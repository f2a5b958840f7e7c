"""How the writing of landing files goes."""

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.core import Metric

from exporter.metrics import Families, counter, gauge

ROWS = counter("ackscope_landing_rows_total", "Rows written to landing files.", "landing writer", "table")
FILES = counter("ackscope_landing_files_total", "Landing files written.", "landing writer")
ERRORS = counter("ackscope_landing_errors_total", "Files that could not be written.", "landing writer")
DROPPED = counter(
    "ackscope_landing_dropped_rows_total",
    "Rows dropped, the oldest first, because the disk did not take them in time.",
    "landing writer",
)
BUFFERED = gauge("ackscope_landing_buffered_rows", "Rows that wait to be written.", "landing writer")

SPECS = (ROWS, FILES, ERRORS, DROPPED, BUFFERED)


class LandingCounts(NamedTuple):
    """What the writer counted since the start.

    Attributes:
        rows: table name -> rows written.
        buffered: rows that wait now.
    """

    rows: Mapping[str, int]
    files: int
    errors: int
    dropped: int
    buffered: int


def collect(counts: LandingCounts | None) -> list[Metric]:
    """Families; none where nothing is landed."""
    families = Families(SPECS)
    if counts is not None:
        for table, rows in counts.rows.items():
            families.add(ROWS, {"table": table}, rows)
        families.add(FILES, {}, counts.files)
        families.add(ERRORS, {}, counts.errors)
        families.add(DROPPED, {}, counts.dropped)
        families.add(BUFFERED, {}, counts.buffered)
    return families.result()
