"""`ackscope pipeline analyse`: update baselines, changes, episodes and answers now."""

import argparse
from dataclasses import asdict, dataclass
from functools import partial

from ackscope.cli import print_json
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from ackscope.tables import ANALYSES
from pipeline import downsample
from pipeline.analysis.changes import BLOCK_HOURS
from pipeline.analysis.refresh import due, refresh
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_folders
from pipeline.session import spark_session
from pipeline.side_by_side import side_by_side
from pipeline.spark_settings import check_master
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

HELP = "update baselines, changes, finding episodes and answers now"

_RESUME_HINT = "what was committed is complete; run `ackscope pipeline analyse` again for the rest"


@dataclass(frozen=True, slots=True)
class AnalyseSummary:
    """What was done for one cluster.

    Attributes:
        hours_of_minutes: hours of minutes searched for level shifts.
        hours_of_the_week: hours of the week whose baselines were computed.
        rows: rows in the analysis tables now, by table.
    """

    cluster: str
    hours_of_minutes: int
    hours_of_the_week: int
    rows: dict[str, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser)
    parser.add_argument("--cluster", metavar="C", help="limit to one cluster (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="report what would be done without changing anything")


def run(args: argparse.Namespace) -> int:
    """Run the analyses and print a summary."""
    master, clock = check_master(args.master), SystemClock()
    now = clock.now().wall
    with graceful(partial(spark_session, master), _RESUME_HINT) as (stop, session):
        landing, rollups = (
            Landing(args.landing.absolute()),
            Rollups(args.rollups.absolute(), go_on=stop.go_on, delta=args.delta),
        )
        clusters = _select_clusters(rollups, args.cluster)
        due_work = {cluster: due(rollups, cluster, now) for cluster in clusters}
        if clusters and not args.dry_run:
            with session() as spark:

                def analyse(cluster: str) -> None:
                    refresh(spark, landing, rollups, cluster, now, stop.go_on)
                    stop.check()

                downsample.refresh(spark, rollups, clusters, stop.go_on)
                stop.check()
                side_by_side(spark, clusters, analyse)
    summaries = [
        AnalyseSummary(
            cluster,
            len(it.blocks) * BLOCK_HOURS,
            len(it.hours) * 7,
            {name: sum(file.rows for file in rollups.manifest(cluster).files_for(name)) for name in ANALYSES},
        )
        for cluster, it in due_work.items()
    ]
    if args.json:
        print_json([asdict(it) for it in summaries])
    else:
        print("\n".join(_report_line(it, dry_run=args.dry_run) for it in summaries) or f"no rollups in {rollups.root}")
    return 0


def _select_clusters(rollups: Rollups, cluster: str | None) -> tuple[str, ...]:
    known = rollups.clusters()
    if cluster is None:
        return known
    if cluster not in known:
        raise UsageError(f"--cluster {cluster}: not in {rollups.root}; there are: {', '.join(known) or 'none'}")
    return (cluster,)


def _report_line(it: AnalyseSummary, *, dry_run: bool) -> str:
    would = "would look" if dry_run else "looked"
    done = f"{would} for shifts in {it.hours_of_minutes} hours, made bands of {it.hours_of_the_week} hours of the week"
    if dry_run:
        return f"{it.cluster}: {done.replace('made', 'and make')}"
    return f"{it.cluster}: {done}; " + ", ".join(f"{rows} {name}" for name, rows in it.rows.items())
