"""`ackscope pipeline backfill`: rebuild the rollups of some dates."""

import argparse
from functools import partial

from ackscope.cli import print_json
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from pipeline.backfill import BackfillSummary, DateRange, backfill
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_folders, day
from pipeline.progress import progress_bar
from pipeline.session import spark_session
from pipeline.spark_settings import check_master

HELP = "rebuild the rollups of some dates from the landing rows that have not expired"

_RESUME_HINT = "what was committed is complete; run the same `backfill` again for the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser)
    parser.add_argument("--from", dest="first", type=day, required=True, metavar="DATE", help="the first UTC date")
    parser.add_argument("--to", dest="last", type=day, required=True, metavar="DATE", help="the last UTC date")
    parser.add_argument("--cluster", metavar="C", help="limit to one cluster (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="report what would be rebuilt without changing anything")


def run(args: argparse.Namespace) -> int:
    """Rebuild the dates and print a summary."""
    if args.last < args.first:
        raise UsageError(f"--to {args.last} is before --from {args.first}; swap them")
    master = check_master(args.master)
    span = DateRange(args.first, args.last, args.cluster)
    with (
        graceful(partial(spark_session, master), _RESUME_HINT) as (stop, session),
        progress_bar("backfill", "hours") as progress,
    ):
        summary = backfill(
            args.landing.absolute(),
            args.rollups.absolute(),
            span,
            session,
            SystemClock(),
            stop=stop,
            progress=progress,
            dry_run=args.dry_run,
            delta=args.delta,
        )
    if args.json:
        print_json(summary.document())
    else:
        print(report(summary, span))
    return 0


def report(summary: BackfillSummary, span: DateRange) -> str:
    """The summary as text."""
    dates = f"{span.first} to {span.last}"
    if not summary.hours:
        lines = [f"nothing to rebuild: landing has no rows of {dates}"]
    elif summary.dry_run:
        lines = [f"would rebuild {summary.hours} hours of {dates} from {summary.landing_rows} landing rows"]
    else:
        changed = f"{summary.rollup_files} new files" if summary.rollup_files else "nothing changed"
        lines = [
            f"rebuilt {summary.hours} hours of {dates} from {summary.landing_rows} landing rows: {changed}",
            f"took    {summary.seconds:.1f} s",
        ]
    if summary.without_raw:
        lines.append(f"skipped {summary.without_raw} hours whose raw rows have expired; their rollups stay")
    return "\n".join(lines)
