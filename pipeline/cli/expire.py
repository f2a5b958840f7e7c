"""`ackscope pipeline expire`: remove old data."""

import argparse

from ackscope.cli import folder, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import EXIT_COULD_NOT
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_delta
from pipeline.expire import ExpireSummary, Retention, expire
from pipeline.session import spark_session

HELP = "remove raw rows, minutes, hours and days beyond their retention"

_RESUME_HINT = "what was removed had expired; run `ackscope pipeline expire` again for the rest"

_DEFAULTS = {"raw": "3d", "minutes": "30d", "hours": "400d", "days": "forever"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--landing", type=folder, required=True, metavar="DIR", help="folder that the exporter writes to"
    )
    parser.add_argument("--rollups", type=folder, required=True, metavar="DIR", help="folder of the rollups")
    parser.add_argument("--cluster", metavar="C", help="limit to one cluster (default: all)")
    for grain, default in _DEFAULTS.items():
        parser.add_argument(
            f"--{grain}",
            type=_age,
            default=_age(default),
            metavar="AGE",
            help=f"retention (default: {default})",
        )
    add_delta(parser)
    parser.add_argument("--dry-run", action="store_true", help="report what would be removed without changing anything")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Remove expired data and print a summary; exit code 3 if some of it could not be removed."""
    keep = Retention(args.raw, args.minutes, args.hours, args.days)
    landing, rollups = args.landing.absolute(), args.rollups.absolute()
    with graceful(spark_session, _RESUME_HINT) as (stop, _no_spark):
        summary = expire(
            landing, rollups, keep, SystemClock(), args.cluster, dry_run=args.dry_run, stop=stop, delta=args.delta
        )
    if args.json:
        print_json(summary.document())
    else:
        print(report(summary))
    return EXIT_COULD_NOT if summary.refused else 0


def report(summary: ExpireSummary) -> str:
    """The summary as text."""
    lines = ["would be removed:" if summary.dry_run else "removed:"]
    lines += [
        f"{name:<8} {removed.dates} dates, {removed.files} files, {removed.bytes / 2**20:.1f} MB, {removed.rows} rows"
        for name, removed in summary.removed.items()
    ]
    if not any(removed.files for removed in summary.removed.values()):
        lines = ["nothing has expired" if not summary.refused else "nothing was removed"]
    elif not summary.dry_run:
        lines.append("replaced rollup files stay on disk for 10 more minutes, for readers")
    return "\n".join([*lines, *(f"refused  {line}" for line in summary.refused)])


def _age(text: str) -> float | None:
    if text.strip().lower() == "forever":
        return None
    try:
        return seconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid age {text!r}; use 3d, 12h or forever") from None
