"""`ackscope pipeline stream`: landing as it arrives."""

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ackscope.cli import argument, print_json, seconds
from ackscope.clock import SystemClock
from pipeline import jobs
from pipeline.cli.options import add_folders
from pipeline.session import check_master, spark_session
from pipeline.stop import Stop

HELP = "follow the landing folder until SIGTERM or Ctrl-C"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folders, and how often it looks."""
    add_folders(parser)
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="which files are done (default: ROLLUPS/_checkpoint)"
    )
    parser.add_argument(
        "--trigger",
        type=argument(_trigger),
        default=5.0,
        metavar="TIME",
        help="look for new files this often (default: 5s)",
    )


def run(args: argparse.Namespace) -> int:
    """Do it until it is told to stop."""
    master = check_master(args.master)
    landing, rollups = args.landing.absolute(), args.rollups.absolute()
    stop, checkpoint = Stop(), (args.checkpoint or rollups / "_checkpoint").absolute()
    stop.listen()
    session = partial(spark_session, master, long_lived=True)
    status = jobs.stream(landing, rollups, checkpoint, args.trigger, session, stop, SystemClock())
    if args.json:
        print_json(asdict(status))
    return 0


def _trigger(text: str) -> float:
    value = seconds(text)
    if value < 0.5:
        raise ValueError(f"{text!r} is too often, each look lists the whole landing folder; write 500ms or more")
    return value
