"""Options that several jobs have."""

import argparse
from datetime import date

from ackscope.cli import folder
from pipeline.shard import ALL, Shard


def add_folders(parser: argparse.ArgumentParser, *, landing: bool = True, rollups: bool = True) -> None:
    """Declare the folders of a job, `--master` and `--json`."""
    if landing:
        parser.add_argument(
            "--landing", type=folder, required=True, metavar="DIR", help="folder that the exporter writes to"
        )
    if rollups:
        parser.add_argument("--rollups", type=folder, required=True, metavar="DIR", help="folder of the rollups")
    if landing and rollups:
        add_delta(parser)
    parser.add_argument(
        "--master", help="Spark master (default: that of spark-submit or spark-defaults.conf, otherwise local[2])"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def add_delta(parser: argparse.ArgumentParser) -> None:
    """Declare `--no-delta`, for jobs that commit."""
    parser.add_argument(
        "--no-delta",
        dest="delta",
        action="store_false",
        help="publish no Delta tables; pass it to every job (default: publish them if `deltalake` is installed)",
    )


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """Declare `--clusters`, which shards a fleet over several jobs."""
    parser.add_argument(
        "--clusters",
        type=shard,
        default=ALL,
        metavar="LIST",
        help="handle only these clusters, names or patterns: 'shop,eu-*' (default: all)",
    )


def shard(text: str) -> Shard:
    """The clusters of a list.

    Raises:
        argparse.ArgumentTypeError: it names none.
    """
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def day(text: str) -> date:
    """A date.

    Raises:
        argparse.ArgumentTypeError: it is not a date.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid date {text!r}; use 2026-03-01") from None
