"""`ackscope pipeline backtest`: what other thresholds would have reported, replayed over the recorded history."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ackscope.cli import argument, folder, nearest, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import DataError, UsageError
from ackscope.findings import Severity
from ackscope.manifest import clusters
from ackscope.object_path import Place
from pipeline.answers.moments import parse_moment
from pipeline.answers.rollup_reader import require_cluster
from pipeline.backtest import result_file
from pipeline.backtest.document import Asked, Replayed, document
from pipeline.backtest.job import BacktestPlan, BacktestResult, backtest
from pipeline.backtest.proposal import Proposal, as_thresholds, propose
from pipeline.backtest.report import render, with_text
from pipeline.backtest.settings import Setting, chosen_rules, settings_of, thresholds_of, unrecorded_needs
from pipeline.backtest.truth import read_incidents
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_clusters, add_folders
from pipeline.session import spark_session
from pipeline.shard import Shard
from pipeline.spark_settings import check_master
from pipeline.storage.landing import require_folder

HELP = "replay the diagnosis over the history with other thresholds, and propose some"

PROPOSED = "proposed"

_ALL = "all clusters"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_folders(parser, landing=False)
    parser.add_argument(
        "--landing",
        type=folder,
        metavar="DIR",
        help="folder that the exporter writes to; without it only minutes count",
    )
    parser.add_argument(
        "--rule", action="append", default=[], metavar="R", help="rule to compare (repeatable; default: by --set)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="T=V[,V]", help="threshold and its other values (repeatable)"
    )
    duration = argument(seconds)
    parser.add_argument(
        "--last", type=duration, default=seconds("90d"), metavar="TIME", help="how far back to look (default: 90d)"
    )
    parser.add_argument("--until", default="now", metavar="TIME", help="end of the time range (default: now)")
    add_clusters(parser)
    parser.add_argument(
        "--severity", choices=("info", "warning"), default="warning", help="lowest that counts (default: warning)"
    )
    parser.add_argument(
        "--incidents", type=Path, metavar="FILE", help="what really happened (default: the recorded episodes)"
    )
    parser.add_argument(
        "--brief",
        type=duration,
        default=0.0,
        metavar="TIME",
        help="recorded episodes that ended sooner count as false (default: 0)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the exporter's, for the thresholds in force")


def run(args: argparse.Namespace) -> int:
    """Replay, store the result of each cluster and print it.

    Raises:
        AckscopeError: an option, a file or the history cannot be used.
    """
    master, now = check_master(args.master), SystemClock().now().wall
    settings = settings_of(args.set, thresholds_of(args.config))
    plan = _plan(args, settings, now)
    if all(unrecorded_needs(rule) for rule in plan.rules):
        needs = "; ".join(f"{rule} needs {', '.join(unrecorded_needs(rule))}" for rule in plan.rules)
        raise UsageError(f"--rule: nothing to replay, the history does not have what these rules need: {needs}")
    asked = Asked(plan.rules, plan.severity, plan.start, plan.end, str(args.incidents or ""), args.brief)
    with (
        graceful(partial(spark_session, master), "no result was stored; run it again") as (_stop, session),
        session() as spark,
    ):
        result = backtest(spark, plan, settings)
        proposals, shown = replay_proposal(spark, plan, settings, result)
    if not result.histories:
        raise DataError(f"--rollups {plan.rollups}: no minutes or landing rows in this time; use a longer --last")
    documents = _documents(asked, shown, result, proposals, now)
    for cluster, mine in documents.items():
        if cluster != _ALL:
            result_file.write(plan.rollups, cluster, mine)
    if args.json:
        print_json(documents)
    else:
        print(render(documents[_ALL] if _ALL in documents else next(iter(documents.values()))))
    return 0


def replay_proposal(
    spark: SparkSession, plan: BacktestPlan, settings: list[Setting], result: BacktestResult
) -> tuple[list[Proposal], list[Setting]]:
    """Propose thresholds and replay them, so that their figures are no sum of others; adds the episodes to the result.

    Returns:
        The proposals, and the settings with the proposed one at the end, if there is one.
    """
    proposals = propose(result.histories, settings, plan.rules, plan.severity)
    if not proposals:
        return [], settings
    proposed = Setting(PROPOSED, as_thresholds(settings[0].thresholds, proposals))
    again = {it.cluster: it.settings[0] for it in backtest(spark, plan, [proposed]).histories}
    result.histories = [replace(it, settings=(*it.settings, again.get(it.cluster, ()))) for it in result.histories]
    return proposals, [*settings, proposed]


def _plan(args: argparse.Namespace, settings: list[Setting], now: float) -> BacktestPlan:
    root = args.rollups.absolute()
    landing = None if args.landing is None else args.landing.absolute()
    if landing is not None:
        require_folder(landing)
    end = parse_moment(args.until, now, "--until")
    if args.last <= 0:
        raise UsageError("invalid --last 0; use a duration, such as 30d")
    return BacktestPlan(
        landing,
        root,
        _clusters(root, args.clusters),
        end - args.last,
        end,
        chosen_rules(args.rule, settings),
        Severity(args.severity),
        None if args.incidents is None else read_incidents(args.incidents),
        args.brief,
    )


def _clusters(root: Place, shard: Shard) -> tuple[str, ...]:
    known = clusters(root) or (require_cluster(root, None),)
    for pattern in shard.patterns:
        if not any(it in Shard((pattern,)) for it in known):
            hint = nearest(pattern, list(known))
            raise UsageError(f"--clusters {pattern!r}: no such cluster{hint}; there are: {', '.join(known)}")
    return tuple(it for it in known if it in shard)


def _documents(
    asked: Asked, settings: list[Setting], result: BacktestResult, proposals: list[Proposal], now: float
) -> dict[str, Any]:
    done = Replayed(result.histories, result.tasks, result.recorded, sum(result.missing_hours.values()))
    found = {
        it.cluster: document(
            it.cluster, asked, settings, done.of(it.cluster, result.missing_hours[it.cluster]), proposals, now
        )
        for it in result.histories
    }
    if len(found) > 1:
        found[_ALL] = document(f"{len(found)} clusters", asked, settings, done, proposals, now)
    return {name: with_text(it) for name, it in found.items()}
