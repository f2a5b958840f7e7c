"""`ackscope pipeline run`: roll up everything in landing, once."""

import argparse
from dataclasses import asdict
from functools import partial

from ackscope.cli import print_json
from ackscope.clock import SystemClock
from ackscope.object_path import Place
from pipeline import jobs
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_clusters, add_folders
from pipeline.progress import progress_bar
from pipeline.session import spark_session
from pipeline.spark_settings import check_master

HELP = "rebuild the rollups of every hour that the landing folder has"

_RESUME_HINT = "what was committed is complete; run `ackscope pipeline run` again for the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser)
    add_clusters(parser)


def run(args: argparse.Namespace) -> int:
    """Roll up and print a summary."""
    master = check_master(args.master)
    landing, rollups = args.landing.absolute(), args.rollups.absolute()
    with (
        graceful(partial(spark_session, master), _RESUME_HINT) as (stop, session),
        progress_bar("run", "hours") as progress,
    ):
        summary = jobs.run(
            landing, rollups, session, SystemClock(), progress, stop=stop, shard=args.clusters, delta=args.delta
        )
    if args.json:
        print_json(asdict(summary))
    else:
        print(report(summary, landing))
    return 0


def report(summary: jobs.RunSummary, landing: Place) -> str:
    """The summary as text."""
    if summary.landing_files:
        lines = [
            f"read    {summary.landing_rows} rows of {summary.landing_files} landing files, {summary.hours} hours",
            f"wrote   {summary.rollup_files} rollup files in {summary.seconds:.1f} s",
            *(f"        {name:<12} {rows} rows" for name, rows in summary.rollup_rows.items()),
        ]
    else:
        lines = [f"nothing to read: {landing} has no valid landing files"]
    if summary.quarantined:
        lines.append(f"moved   {summary.quarantined} bad files to {landing / '_quarantine'}")
    if summary.misdated_rows:
        lines.append(f"ignored {summary.misdated_rows} misdated rows; copies are in {landing / '_quarantine'}")
    return "\n".join(lines)
