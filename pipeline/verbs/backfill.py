"""`ackscope pipeline backfill`: some dates again."""

import argparse
from dataclasses import asdict
from functools import partial

from ackscope.cli import print_json
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from pipeline.backfill import Span, Summary, backfill
from pipeline.progress import shown
from pipeline.session import check_master, spark_session
from pipeline.verbs.folders import add_folders, day
from pipeline.verbs.orderly import orderly

HELP = "rebuild the rollups of some dates from the landing rows that are still there"

_REST = "what was rebuilt is whole: run the same `backfill` again for the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folders, and which dates."""
    add_folders(parser)
    parser.add_argument("--from", dest="first", type=day, required=True, metavar="DATE", help="the first UTC date")
    parser.add_argument("--to", dest="last", type=day, required=True, metavar="DATE", help="the last one")
    parser.add_argument("--cluster", metavar="C", help="this one only (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be rebuilt, and change nothing")


def run(args: argparse.Namespace) -> int:
    """Do it, and say what was done."""
    if args.last < args.first:
        raise UsageError(f"--to {args.last} is before --from {args.first}; write the earlier date first")
    master = check_master(args.master)
    span = Span(args.first, args.last, args.cluster)
    with orderly(partial(spark_session, master), _REST) as (stop, session), shown("backfill", "hours") as progress:
        summary = backfill(
            args.landing.absolute(),
            args.rollups.absolute(),
            span,
            session,
            SystemClock(),
            stop=stop,
            progress=progress,
            dry_run=args.dry_run,
        )
    if args.json:
        print_json(asdict(summary))
    else:
        print(report(summary, span))
    return 0


def report(summary: Summary, span: Span) -> str:
    """A summary for people."""
    dates = f"{span.first} to {span.last}"
    if not summary.hours:
        lines = [f"nothing to rebuild: landing has no rows of {dates}"]
    elif summary.dry_run:
        lines = [f"would rebuild {summary.hours} hours of {dates} from {summary.landing_rows} landing rows"]
    else:
        changed = f"{summary.rollup_files} files are new" if summary.rollup_files else "all was as it should be"
        lines = [
            f"rebuilt {summary.hours} hours of {dates} from {summary.landing_rows} landing rows: {changed}",
            f"took    {summary.seconds:.1f} s",
        ]
    if summary.kept:
        lines.append(f"kept    {summary.kept} hours as they were rolled up, for their raw rows are gone")
    return "\n".join(lines)
