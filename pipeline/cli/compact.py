"""`ackscope pipeline compact`: many small files become few."""

import argparse
from dataclasses import asdict
from functools import partial

from ackscope.cli import argument, print_json, seconds
from ackscope.clock import SystemClock
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_folders
from pipeline.compact import Compactor, CompactSummary
from pipeline.progress import progress_bar
from pipeline.session import check_master, spark_session

HELP = "put the small files of closed days together, while others read"

_RESUME_HINT = "every folder is as it was, or done: `ackscope pipeline compact` again does the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folders, which cluster, and when a day is closed."""
    add_folders(parser)
    parser.add_argument("--cluster", metavar="C", help="this one only (default: all)")
    parser.add_argument(
        "--after",
        type=argument(seconds),
        default=3600.0,
        metavar="TIME",
        help="a day is closed so long after its end (default: 1h)",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")


def run(args: argparse.Namespace) -> int:
    """Do it, and say what was done."""
    master = check_master(args.master)
    with (
        graceful(partial(spark_session, master), _RESUME_HINT) as (stop, session),
        progress_bar("compact", "folders") as progress,
    ):
        compactor = Compactor(
            args.landing.absolute(),
            args.rollups.absolute(),
            session,
            SystemClock(),
            args.cluster,
            args.after,
            stop,
            progress,
        )
        summary = compactor.run(dry_run=args.dry_run)
    if args.json:
        print_json(asdict(summary))
    else:
        print(report(summary))
    return 0


def report(summary: CompactSummary) -> str:
    """A summary for people."""
    if summary.folders:
        become = "would become about" if summary.dry_run else "became"
        smaller = "" if summary.dry_run else f", {_megabytes(summary.bytes_after)}"
        files = f"{summary.files_before} files ({_megabytes(summary.bytes_before)}) of {summary.folders} folders"
        lines = [f"landing  {files} {become} {summary.files_after}{smaller}; {summary.rows} rows"]
    else:
        lines = ["landing  nothing to put together: no closed day has several small files that are rolled up"]
    would = "would become" if summary.dry_run else "became"
    lines.append(f"rollups  {summary.rollup_days} days of tables {would} one file each")
    if summary.behind:
        lines.append(
            f"waiting  {summary.behind} landing files of closed days may not be rolled up yet; "
            "`ackscope pipeline run` rolls all up"
        )
    if summary.finished:
        lines.append(f"mended   {summary.finished} folders in which an earlier `compact` was cut off")
    if not summary.dry_run:
        lines.append(f"took     {summary.seconds:.1f} s")
    return "\n".join(lines)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
