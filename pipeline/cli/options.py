"""The options that the jobs share."""

import argparse
import re
from datetime import date
from pathlib import Path

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def add_folders(parser: argparse.ArgumentParser, *, landing: bool = True, rollups: bool = True) -> None:
    """The folders that a job works on, `--master` and `--json`."""
    if landing:
        parser.add_argument("--landing", type=folder, required=True, metavar="DIR", help="where the exporter writes")
    if rollups:
        parser.add_argument("--rollups", type=folder, required=True, metavar="DIR", help="where the rollups go")
    parser.add_argument("--master", default="local[2]", help="as Spark takes it (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def folder(text: str) -> Path:
    """A local or mounted folder: files are renamed and locked there, which no object storage can.

    Raises:
        argparse.ArgumentTypeError: an address such as `s3a://bucket`.
    """
    if _ADDRESS.match(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is an address; object storage is not supported: give a local folder, or one that is mounted"
        )
    return Path(text)


def day(text: str) -> date:
    """A date.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date, write 2026-03-01") from None
