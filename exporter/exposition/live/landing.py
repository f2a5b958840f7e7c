"""Metrics of the landing writer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client.core import Metric

from exporter.exposition.specs import MetricFamilies, counter, gauge

_SOURCE = "landing writer"

ROWS = counter("ackscope_landing_rows_total", "Rows written to landing files.", _SOURCE, "table")
FILES = counter("ackscope_landing_files_total", "Landing files written.", _SOURCE)
WRITTEN = counter("ackscope_landing_written_bytes_total", "Bytes of the landing files written.", _SOURCE)
ERRORS = counter("ackscope_landing_errors_total", "Files that could not be written or removed.", _SOURCE)
DEFECTS = counter(
    "ackscope_landing_defects_total", "Snapshots whose rows could not be created, because of a bug.", _SOURCE, "table"
)
DROPPED = counter(
    "ackscope_landing_dropped_rows_total",
    "Rows that were not landed: buffer (oldest rows, because the disk was too slow), cap (channels or "
    "consumers beyond the limit), contract (values that do not fit the table) or spool (oldest files, because the "
    "bucket was away for too long).",
    _SOURCE,
    "table",
    "reason",
)
BUFFERED = gauge("ackscope_landing_buffered_rows", "Rows buffered for writing.", _SOURCE)
FOLDER_BYTES = gauge("ackscope_landing_kept_bytes", "Size of the exporter's files in the landing directory.", _SOURCE)
EXPIRED_FILES = counter(
    "ackscope_landing_expired_files_total", "Files removed, oldest first, because of age or total size.", _SOURCE
)
EXPIRED_BYTES = counter("ackscope_landing_expired_bytes_total", "Size of the files removed.", _SOURCE)
AGE = gauge("ackscope_landing_last_write_age_seconds", "Time since a landing file was last written.", _SOURCE)
UPLOADED = counter("ackscope_landing_uploaded_files_total", "Files uploaded to the bucket.", _SOURCE)
UPLOAD_ERRORS = counter("ackscope_landing_upload_errors_total", "Uploads that failed; each is tried again.", _SOURCE)
SPOOLED = gauge("ackscope_landing_spooled_bytes", "Size of the files that wait for the bucket.", _SOURCE)
UPLOAD_LAG = gauge(
    "ackscope_landing_upload_lag_seconds", "Age of the oldest file that waits for the bucket; 0 if none does.", _SOURCE
)

SPECS = (
    ROWS,
    FILES,
    WRITTEN,
    ERRORS,
    DEFECTS,
    DROPPED,
    BUFFERED,
    FOLDER_BYTES,
    EXPIRED_FILES,
    EXPIRED_BYTES,
    AGE,
    UPLOADED,
    UPLOAD_ERRORS,
    SPOOLED,
    UPLOAD_LAG,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingCounts:
    """Counters of the landing writer since startup.

    Attributes:
        rows: table name -> rows written.
        defects: table name -> snapshots whose rows could not be created.
        dropped: (table name, reason) -> rows dropped.
        buffered: rows waiting to be written.
        folder_bytes: size of the exporter's files in the directory; None if unknown yet.
        last_write_age: seconds since the last write; None before the first.
        uploaded_files, upload_errors, spooled_bytes, upload_lag: of a bucket; None on a disk.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    written: int = 0
    errors: int = 0
    defects: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[tuple[str, str], int] = field(default_factory=dict)
    buffered: int = 0
    folder_bytes: int | None = None
    expired_files: int = 0
    expired_bytes: int = 0
    last_write_age: float | None = None
    uploaded_files: int | None = None
    upload_errors: int | None = None
    spooled_bytes: int | None = None
    upload_lag: float | None = None


def collect(counts: LandingCounts | None) -> list[Metric]:
    """Metric families; none if nothing is landed."""
    families = MetricFamilies(SPECS)
    if counts is not None:
        for table, rows in counts.rows.items():
            families.add(ROWS, {"table": table}, rows)
        for table, defects in counts.defects.items():
            families.add(DEFECTS, {"table": table}, defects)
        for (table, reason), rows in counts.dropped.items():
            families.add(DROPPED, {"table": table, "reason": reason}, rows)
        families.add(FILES, {}, counts.files)
        families.add(WRITTEN, {}, counts.written)
        families.add(ERRORS, {}, counts.errors)
        families.add(BUFFERED, {}, counts.buffered)
        families.add(FOLDER_BYTES, {}, counts.folder_bytes)
        families.add(EXPIRED_FILES, {}, counts.expired_files)
        families.add(EXPIRED_BYTES, {}, counts.expired_bytes)
        families.add(AGE, {}, counts.last_write_age)
        families.add(UPLOADED, {}, counts.uploaded_files)
        families.add(UPLOAD_ERRORS, {}, counts.upload_errors)
        families.add(SPOOLED, {}, counts.spooled_bytes)
        families.add(UPLOAD_LAG, {}, counts.upload_lag)
    return families.result()
