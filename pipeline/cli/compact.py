"""`ackscope pipeline compact`: merge small files."""

import argparse
from dataclasses import asdict
from functools import partial

from ackscope.cli import argument, print_json, seconds
from ackscope.clock import SystemClock
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_folders
from pipeline.compact import Compactor, CompactSummary
from pipeline.progress import progress_bar
from pipeline.session import spark_session
from pipeline.spark_settings import check_master

HELP = "merge small files of completed days; readers are not blocked"

_RESUME_HINT = "every folder is unchanged or complete; run `ackscope pipeline compact` again for the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser)
    parser.add_argument("--cluster", metavar="C", help="limit to one cluster (default: all)")
    parser.add_argument(
        "--after",
        type=argument(seconds),
        default=3600.0,
        metavar="TIME",
        help="how long after its end a day counts as completed (default: 1h)",
    )
    parser.add_argument("--dry-run", action="store_true", help="report what would be done without changing anything")


def run(args: argparse.Namespace) -> int:
    """Compact and print a summary."""
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
            delta=args.delta,
        )
        summary = compactor.run(dry_run=args.dry_run)
    if args.json:
        print_json(asdict(summary))
    else:
        print(report(summary))
    return 0


def report(summary: CompactSummary) -> str:
    """The summary as text."""
    if summary.folders:
        become = "would become about" if summary.dry_run else "became"
        smaller = "" if summary.dry_run else f", {_megabytes(summary.bytes_after)}"
        files = f"{summary.files_before} files ({_megabytes(summary.bytes_before)}) of {summary.folders} folders"
        lines = [f"landing  {files} {become} {summary.files_after}{smaller}; {summary.rows} rows"]
    else:
        lines = ["landing  nothing to compact: no completed day has several small files that are rolled up"]
    would = "would become" if summary.dry_run else "became"
    lines.append(f"rollups  {summary.rollup_days} days of tables {would} one file each")
    if summary.behind:
        lines.append(
            f"waiting  {summary.behind} landing files of completed days may not be rolled up yet; "
            "`ackscope pipeline run` rolls them up"
        )
    if summary.finished:
        lines.append(f"repaired {summary.finished} folders in which an earlier `compact` was interrupted")
    if not summary.dry_run:
        lines.append(f"took     {summary.seconds:.1f} s")
    return "\n".join(lines)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
