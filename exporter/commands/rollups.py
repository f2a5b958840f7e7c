"""`--rollups DIR`: have a command know what is usual, from what the pipeline made of the past."""

import argparse
from pathlib import Path

from ackscope import catalog
from ackscope.baselines import Baselines, hour_of_week
from ackscope.errors import UsageError


class RollupBaselines:
    """What is usual of one cluster, hour by hour.

    Args:
        root: the rollup folder.
        cluster: its name there.
    """

    def __init__(self, root: Path, cluster: str) -> None:
        self._root, self._cluster = root, cluster
        self._known: Baselines | None = None

    def at(self, wall: float) -> Baselines:
        """What is usual at a moment, seconds since 1970.

        Raises:
            DataError: the rollups cannot be read.
        """
        hour = hour_of_week(wall)
        if self._known is None or self._known.hour_of_week != hour:
            # Loaded only where it is asked for: it brings Arrow with it.
            from exporter.history.bands import read_bands  # noqa: PLC0415  see above

            self._known, _ = read_bands(self._root, self._cluster, hour)
        return self._known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--rollups",
        metavar="DIR",
        type=Path,
        help="where `ackscope pipeline` writes: judge by what is usual at this hour of the week, too",
    )
    parser.add_argument("--cluster", metavar="NAME", help="what the broker is called there, where there are several")


def baselines_from(args: argparse.Namespace) -> RollupBaselines | None:
    """What the options ask for; None where they are not given.

    Raises:
        UsageError: there are no rollups, or not of that cluster.
    """
    if args.rollups is None:
        if args.cluster is not None:
            raise UsageError("--cluster: names a cluster of the rollups; give --rollups DIR, too")
        return None
    known = catalog.clusters(args.rollups)
    if not known:
        raise UsageError(f"--rollups: {args.rollups} holds no rollups; name the folder that `ackscope pipeline` writes")
    if args.cluster is None and len(known) > 1:
        raise UsageError(f"--cluster: say which of {', '.join(known)}")
    if args.cluster is not None and args.cluster not in known:
        raise UsageError(f"--cluster: {args.cluster!r} has no rollups in {args.rollups}; there are {', '.join(known)}")
    return RollupBaselines(args.rollups, args.cluster or known[0])
