"""`ackscope pipeline`: landing files to rollups, once (`run`) or as they arrive (`stream`)."""

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ackscope.cli import argument, print_json, seconds
from ackscope.clock import SystemClock
from pipeline import jobs
from pipeline.session import check_master, spark_session
from pipeline.stop import Stop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the jobs and their options."""
    verbs = parser.add_subparsers(dest="verb", metavar="JOB", required=True)
    run = verbs.add_parser("run", help="rebuild the rollups of every hour that the landing folder has")
    stream = verbs.add_parser("stream", help="follow the landing folder until SIGTERM or Ctrl-C")
    for job in (run, stream):
        job.add_argument("--landing", type=Path, required=True, metavar="DIR", help="where the exporter writes")
        job.add_argument("--rollups", type=Path, required=True, metavar="DIR", help="where the rollups go")
        job.add_argument("--master", default="local[2]", help="as Spark takes it (default: %(default)s)")
        job.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    stream.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="which files are done (default: ROLLUPS/_checkpoint)"
    )
    stream.add_argument(
        "--trigger",
        type=argument(_trigger),
        default=5.0,
        metavar="TIME",
        help="look for new files this often (default: 5s)",
    )


def run(args: argparse.Namespace) -> int:
    """Do the chosen job."""
    master = check_master(args.master)
    landing, rollups = args.landing.absolute(), args.rollups.absolute()
    if args.verb == "stream":
        stop, checkpoint = Stop(), (args.checkpoint or rollups / "_checkpoint").absolute()
        stop.listen()
        session = partial(spark_session, master, long_lived=True)
        status = jobs.stream(landing, rollups, checkpoint, args.trigger, session, stop, SystemClock())
        if args.json:
            print_json(asdict(status))
        return 0
    summary = jobs.run(landing, rollups, partial(spark_session, master), SystemClock())
    if args.json:
        print_json(asdict(summary))
    else:
        print(report(summary, landing))
    return 0


def report(summary: jobs.Summary, landing: Path) -> str:
    """A summary for people."""
    if summary.landing_files:
        lines = [
            f"read    {summary.landing_rows} rows of {summary.landing_files} landing files, {summary.hours} hours",
            f"wrote   {summary.rollup_files} rollup files in {summary.seconds:.1f} s",
            *(f"        {name:<12} {rows} rows" for name, rows in summary.rollup_rows.items()),
        ]
    else:
        lines = [f"nothing to read: {landing} holds no sound landing files"]
    if summary.quarantined:
        lines.append(f"apart   {summary.quarantined} bad files, now in {landing / '_quarantine'}")
    if summary.misdated_rows:
        lines.append(f"left out {summary.misdated_rows} rows more than a day outside the date of their folder")
    return "\n".join(lines)


def _trigger(text: str) -> float:
    value = seconds(text)
    if value < 0.5:
        raise ValueError(f"{text!r} is too often, each look lists the whole landing folder; write 500ms or more")
    return value
