"""`--rollups DIR`: baselines for a command, from the pipeline's rollups."""

import argparse

from ackscope import manifest
from ackscope.baselines import Baselines, hour_of_week
from ackscope.cli import folder
from ackscope.errors import UsageError
from ackscope.object_path import Place


class RollupBaselines:
    """Baselines of one cluster, loaded by the hour.

    Args:
        root: the rollup directory.
        cluster: name of the cluster in the rollups.
    """

    def __init__(self, root: Place, cluster: str) -> None:
        self._root, self._cluster = root, cluster
        self._known: Baselines | None = None

    def at(self, wall: float) -> Baselines:
        """Return the baselines for the hour of `wall`, in seconds since 1970.

        Raises:
            DataError: the rollups cannot be read.
        """
        hour = hour_of_week(wall)
        if self._known is None or self._known.hour_of_week != hour:
            # Imported only if used: it loads Arrow.
            from exporter.history.bands import read_bands  # noqa: PLC0415  see above

            self._known, _ = read_bands(self._root, self._cluster, hour)
        return self._known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--rollups",
        metavar="DIR",
        type=folder,
        help="directory of `ackscope pipeline`'s rollups: also compare with baselines of this hour of the week",
    )
    parser.add_argument(
        "--cluster", metavar="NAME", help="name of the cluster in the rollups (required if there is more than one)"
    )


def baselines_from(args: argparse.Namespace) -> RollupBaselines | None:
    """Return the baselines that the options ask for; None without --rollups.

    Raises:
        UsageError: there are no rollups, or none of that cluster.
    """
    if args.rollups is None:
        if args.cluster is not None:
            raise UsageError("--cluster: names a cluster of the rollups; give --rollups DIR too")
        return None
    known = manifest.clusters(args.rollups)
    if not known:
        raise UsageError(f"--rollups: no rollups in {args.rollups}; give the directory that `ackscope pipeline` writes")
    if args.cluster is None and len(known) > 1:
        raise UsageError(f"--cluster: choose one of {', '.join(known)}")
    if args.cluster is not None and args.cluster not in known:
        raise UsageError(f"--cluster: no rollups of {args.cluster!r} in {args.rollups}; there are {', '.join(known)}")
    return RollupBaselines(args.rollups, args.cluster or known[0])
