"""`ackscope pipeline stream`: roll up landing files as they arrive."""

import argparse
from dataclasses import asdict
from functools import partial

from ackscope.cli import argument, folder, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from ackscope.object_path import ObjectPath
from pipeline import jobs
from pipeline.cli.options import add_clusters, add_folders
from pipeline.session import spark_session
from pipeline.spark_settings import check_master
from pipeline.stop import Stop

HELP = "roll up landing files as they arrive, until SIGTERM or Ctrl-C"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser)
    add_clusters(parser)
    parser.add_argument(
        "--checkpoint",
        type=folder,
        metavar="DIR",
        help="Spark checkpoint of ingested files (default: ROLLUPS/_checkpoint, one for each --clusters)",
    )
    parser.add_argument(
        "--trigger",
        type=argument(_trigger),
        default=5.0,
        metavar="TIME",
        help="interval between listings of the landing folder (default: 5s)",
    )
    parser.add_argument(
        "--analyse-every",
        type=argument(_analyse_every),
        metavar="TIME",
        help="interval of the analyses: 1m to 1h (default: first after 5m, then less often, up to 1h)",
    )


def run(args: argparse.Namespace) -> int:
    """Run until a stop is requested."""
    master = check_master(args.master)
    landing, rollups = args.landing.absolute(), args.rollups.absolute()
    for option, root in (("--landing", landing), ("--rollups", rollups), ("--checkpoint", args.checkpoint)):
        if isinstance(root, ObjectPath):
            raise UsageError(
                f"{option} {root}: `stream` works on folders only; for object storage start "
                "`ackscope pipeline run` by a timer"
            )
    shard = args.clusters
    stop, checkpoint = Stop(), (args.checkpoint or rollups / f"_checkpoint{shard.suffix}").absolute()
    stop.listen()
    session = partial(spark_session, master, long_lived=True)
    status = jobs.stream(
        landing,
        rollups,
        checkpoint,
        args.trigger,
        session,
        stop,
        SystemClock(),
        analyse_every=args.analyse_every,
        shard=shard,
        delta=args.delta,
    )
    if args.json:
        print_json(asdict(status))
    return 0


def _trigger(text: str) -> float:
    value = seconds(text)
    if value < 0.5:
        raise ValueError(f"{text!r} is too short, each trigger lists the whole landing folder; use 500ms or more")
    return value


def _analyse_every(text: str) -> float:
    value = seconds(text)
    if not 60 <= value <= 3600:
        raise ValueError(f"{text!r} is not between 1m and 1h")
    return value
