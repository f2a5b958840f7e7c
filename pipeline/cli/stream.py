"""`ackscope pipeline stream`: roll up landing files as they arrive."""

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ackscope.cli import argument, folder, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from ackscope.object_path import ObjectPath, Place
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
        help="Spark checkpoint of ingested files (default: ROLLUPS/_checkpoint, one for each --clusters; none for a "
        "bucket)",
    )
    parser.add_argument(
        "--trigger",
        type=argument(_trigger),
        default=5.0,
        metavar="TIME",
        help="interval between listings of the landing files (default: 5s)",
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
    shard, stop = args.clusters, Stop()
    checkpoint = _checkpoint(args.checkpoint, landing, rollups / f"_checkpoint{shard.suffix}")
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


def _checkpoint(chosen: Place | None, landing: Place, default: Place) -> Path | None:
    """The folder of the checkpoint; None if landing and rollups are in a bucket, which needs none.

    Raises:
        UsageError: it must be another one.
    """
    if isinstance(chosen, ObjectPath):
        raise UsageError(f"--checkpoint {chosen}: is not a folder; Spark needs one on a disk")
    if isinstance(landing, ObjectPath):
        if chosen is not None:
            raise UsageError(f"--checkpoint {chosen}: landing files in a bucket need none; leave it out")
        return None if isinstance(default, ObjectPath) else default
    if chosen is None and isinstance(default, ObjectPath):
        raise UsageError(
            "--checkpoint is missing: with landing in a folder and rollups in a bucket, pass a local folder"
        )
    return (chosen or Path(str(default))).absolute()


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
