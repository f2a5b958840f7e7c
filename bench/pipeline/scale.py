"""The measured cost of one typical cluster, multiplied to 1, 100 and 10,000: bytes, files, CPU, manifests."""

import argparse
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.tables import DAYS, HOURS, LANDING, MINUTES, POLL_SAMPLES
from bench.bench import Bench, Document, progress
from bench.pipeline.fleet import Fleet
from bench.pipeline.workers import roll_up
from bench.pipeline.writing import write_fleet
from bench.tables import table
from bench.usage import MB
from pipeline.storage.landing import Landing

CLUSTERS = (1, 100, 10_000)
# Seconds between two landing files of a table, and between polls; the exporter's defaults.
ROTATE, STEP = 10, 15

# Retention of each grain.
RAW_DAYS, MINUTE_DAYS, HOUR_DAYS = 3, 30, 400

# Landing tables with rows in every file: messages, bursts, steps, queues, channels, polls.
_WRITTEN_ALWAYS = 6

# Bytes of one file name in the list of Spark's file source, for paths of typical length.
_LOG_LINE = 160

# Bytes in a manifest for the digest of one hour.
_PART = 29

# Bytes of a shuffled queue sample.
_SHUFFLED = 170

# Share of a core to plan with: the rest is for late data, rebuilds and queries.
_BUSY = 0.5


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """Resources that a number of clusters needs; bytes and files are per day unless stated otherwise.

    Attributes:
        small: landing as written, one file per table every `ROTATE` seconds.
        landing: the same compacted.
        files: landing files before compaction.
        cpu: CPU seconds.
        cores: at a load of `_BUSY`.
        shuffle: shuffled bytes.
        stored: bytes of landing and rollups at full retention.
        stored_files: files at full retention, compacted.
        log: bytes of Spark's list of files after its 30 days.
        listing: seconds to list one day's landing files again, none of them new.
        manifest: bytes of the manifest of one cluster at full retention; it is read and written as a whole.
    """

    clusters: int
    small: float
    landing: float
    minutes: float
    files: float
    cpu: float
    cores: float
    shuffle: float
    stored: float
    stored_files: float
    log: float
    listing: float
    manifest: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--queues", type=int, default=200, help="of the cluster that is measured (default 200)")
    parser.add_argument("--hours", type=int, default=6, help="of it (default 6)")


def measure(args: argparse.Namespace) -> Document:
    """Land and roll up some hours of one cluster, list many small files, and multiply."""
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as name:
        folder = Path(name)
        progress(f"landing {args.hours} hours of {args.queues} queues")
        fleet = Fleet("bench", queues=args.queues, days=1, incidents=0)
        landed = write_fleet(folder / "landing", fleet, args.hours, STEP, times=1)
        progress("rolling up, twice: Java's start is in the first")
        (cold, run), sizes = roll_up(folder / "landing", folder / "rollups", times=2)
        found = manifest.read(folder / "rollups" / "0", fleet.cluster)
        entries = sum(len(files) for files in found.tables.values())
        seen: dict[str, Any] = {
            "queues": args.queues,
            "hours": args.hours,
            "landed": landed,
            "rows": run.answer["rows"],
            "bytes": sizes,
            "cold_cpu": cold.cpu,
            "cpu": run.cpu,
            "peak": run.peak,
            "manifest_entry": len(manifest.encode(found)) / max(entries, 1),
            "looks": _looks(folder / "small", args.queues),
        }
    return seen | {"plans": [asdict(plan(seen, clusters)) for clusters in CLUSTERS]}


def _looks(root: Path, queues: int, files: int = 2000) -> dict[str, float]:
    """Measure CPU seconds per file to list landing files the first time and again, and bytes per day in small files."""
    fleet = Fleet("bench", queues=queues, days=1, incidents=0)
    _, tables = next(iter(fleet.landing(step=STEP, times=1)))
    folder = root / POLL_SAMPLES.name / "cluster=bench" / "date=2026-01-05"
    folder.mkdir(parents=True)
    sizes = []
    for rows in tables.values():
        path = root / "small"
        pq.write_table(rows.slice(0, max(1, rows.num_rows * ROTATE // 3600)), path, compression="zstd")
        sizes.append(path.stat().st_size)
    rows = tables[POLL_SAMPLES.name].slice(0, 4)
    for number in range(files):
        pq.write_table(rows, folder / f"{number:05d}.parquet", compression="zstd")
    landing, partition = Landing(root), next(iter(Landing(root).partitions()))
    took = []
    for _ in range(2):
        began = time.process_time()
        landing.files(partition)
        took.append((time.process_time() - began) / files)
    return {"first": took[0], "again": took[1], "bytes_a_day": sum(sizes) * 86400 / ROTATE}


def plan(seen: dict[str, Any], clusters: int) -> ScalePlan:
    """Multiply the measurements of one cluster."""
    days = 24 / seen["hours"] * clusters
    landing = sum(found[1] for found in seen["landed"].values()) * days
    files = _WRITTEN_ALWAYS * 86400 / ROTATE * clusters
    minutes = sum(seen["bytes"].values()) * days
    # An hour row is as wide as a minute row, and there are 1/60 as many.
    hours = minutes / 60
    cpu = seen["cpu"] * days
    small = seen["looks"]["bytes_a_day"] * clusters
    return ScalePlan(
        clusters=clusters,
        small=small,
        landing=landing,
        minutes=minutes,
        files=files,
        cpu=cpu,
        cores=cpu / 86400 / _BUSY,
        shuffle=seen["landed"]["queue_samples"][0] * days * _SHUFFLED,
        # The last day of landing is not compacted yet.
        stored=landing * (RAW_DAYS - 1) + small + minutes * MINUTE_DAYS + hours * HOUR_DAYS,
        stored_files=clusters
        * (len(LANDING) * (RAW_DAYS - 1) + len(MINUTES) * (MINUTE_DAYS + 24) + len(HOURS) * HOUR_DAYS + len(DAYS) * 24)
        + files,
        log=files * 30 * _LOG_LINE,
        listing=files * seen["looks"]["again"],
        # A day file of minutes lists 24 hours, one of hours the 24 digests of its source.
        manifest=(len(MINUTES) * MINUTE_DAYS + len(HOURS) * HOUR_DAYS) * (seen["manifest_entry"] + 24 * _PART),
    )


def lines(document: Document) -> list[str]:
    """Return the measurements, then the multiplied figures."""
    measured = [
        (name, f"{found[0] * 24 // document['hours']:,}", f"{found[1] / max(found[0], 1):.1f}", _mb(found[1], document))
        for name, found in document["landed"].items()
    ] + [
        (name, f"{rows * 24 // document['hours']:,}", f"{document['bytes'][name] / rows:.1f}", _mb(size, document))
        for (name, rows), size in zip(document["rows"].items(), document["bytes"].values(), strict=True)
    ]
    looks = document["looks"]
    plans = [ScalePlan(**it) for it in document["plans"]]
    rows = [
        ("landing as written, GB a day", *(f"{it.small / 1e9:,.2f}" for it in plans)),
        ("landing compacted, GB a day", *(f"{it.landing / 1e9:,.2f}" for it in plans)),
        ("landing files a day, 10 s each", *(f"{it.files:,.0f}" for it in plans)),
        ("minutes, GB a day", *(f"{it.minutes / 1e9:,.3f}" for it in plans)),
        ("stored in the end, GB", *(f"{it.stored / 1e9:,.1f}" for it in plans)),
        ("files stored in the end", *(f"{it.stored_files:,.0f}" for it in plans)),
        ("cores, at 50 % load", *(f"{it.cores:,.2f}" for it in plans)),
        ("shuffle, GB a day", *(f"{it.shuffle / 1e9:,.2f}" for it in plans)),
        ("state: Spark's list of files, GB", *(f"{it.log / 1e9:,.1f}" for it in plans)),
        ("manifest of each cluster, MB", *(f"{it.manifest / 1e6:,.1f}" for it in plans)),
        ("listing a day's files, s", *(f"{it.listing:,.1f}" for it in plans)),
    ]
    head = (
        f"measured: {document['queues']} queues, 3 nodes, probes at their default rates, polls every {STEP} s, "
        f"{document['hours']} hours"
    )
    took = (
        f"minutes of these hours: {document['cpu']:.0f} s of CPU, {document['cold_cpu']:.0f} including Java's start, "
        f"{document['peak'] / MB:.0f} MB at the peak; listing takes {looks['first'] * 1e6:.0f} us per new landing "
        f"file, {looks['again'] * 1e6:.1f} us per known one; {document['manifest_entry']:.0f} bytes of manifest per "
        "rollup file"
    )
    return [
        head,
        "",
        *table(("table", "rows a day", "bytes a row", "MB a day"), measured),
        "",
        took,
        "",
        *table(("multiplied: clusters", *(f"{it.clusters:,}" for it in plans)), rows),
    ]


def _mb(size: float, document: Document) -> str:
    return f"{size * 24 / document['hours'] / 1e6:.2f}"


BENCH = Bench(
    name="scale",
    room="pipeline",
    shows="one cluster measured, and 1, 100 and 10,000 of them by multiplication",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--hours", "2"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
