"""`ackscope pipeline ask`: queries of the history."""

import argparse
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from ackscope.cli import argument, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import DataError, UsageError
from ackscope.object_path import Place
from pipeline.answers.answer import HistoryAnswer
from pipeline.answers.answers_file import TARGET
from pipeline.answers.capacity import capacity
from pipeline.answers.changed import changed
from pipeline.answers.finding import finding
from pipeline.answers.moments import parse_moment
from pipeline.answers.render import render
from pipeline.answers.rollup_reader import RollupReader, require_cluster
from pipeline.answers.slo import slo
from pipeline.answers.weeks import weeks
from pipeline.answers.worst import BY, worst
from pipeline.backtest import report, result_file
from pipeline.cli.graceful import graceful
from pipeline.cli.options import add_folders
from pipeline.jobs import SessionFactory
from pipeline.session import spark_session
from pipeline.spark_settings import check_master

HELP = "query the history: what changed, what recurs, which queues are worst, when a limit is reached"

_Question = Callable[[SparkSession, RollupReader], HistoryAnswer]
_QUESTIONS = {
    "changed": "what changed around a moment, the likeliest cause first",
    "finding": "when a finding began, how often it recurs, whether it is active now",
    "worst": "the worst queues by redelivery, prefetch ceiling, confirm latency or backlog",
    "weeks": "this week compared with the week before",
    "capacity": "when disk, memory and backlog will reach their limits",
    "slo": "share of probe messages confirmed in time, error budget and burn rate",
    "backtest": "the last result of `ackscope pipeline backtest`",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the questions and their options."""
    questions = parser.add_subparsers(dest="question", metavar="QUESTION", required=True)
    found = {name: questions.add_parser(name, help=words) for name, words in _QUESTIONS.items()}
    for one in found.values():
        add_folders(one, landing=False)
        one.add_argument("--cluster", metavar="NAME", help="cluster name (required if there is more than one)")
    duration = argument(_positive_duration)
    changed_, finding_, worst_, slo_ = (found[name] for name in ("changed", "finding", "worst", "slo"))
    changed_.add_argument("--at", required=True, metavar="TIME", help="2026-03-01T12:04 (UTC), 12:04, '30m ago' or now")
    changed_.add_argument(
        "--around", type=duration, default=3600.0, metavar="TIME", help="time range around --at (default: 1h)"
    )
    finding_.add_argument("rule", metavar="RULE", help="rule name as in `ackscope diagnose`, such as stuck-consumer")
    finding_.add_argument("--name", metavar="NAME", help="limit to one queue, node, ...; default: all")
    worst_.add_argument("--by", required=True, choices=list(BY), help="ranking criterion")
    slo_.add_argument(
        "--under", type=duration, required=True, metavar="TIME", help="latency threshold for confirms, such as 100ms"
    )
    slo_.add_argument(
        "--target",
        type=argument(_percent),
        default=TARGET,
        metavar="PERCENT",
        help="share of the messages (default: 99.9)",
    )
    found["capacity"].add_argument(
        "--backlog", type=int, metavar="N", help="limit for the backlog of one queue, messages"
    )
    for name, default in (("worst", "7d"), ("capacity", "14d"), ("slo", "30d")):
        found[name].add_argument(
            "--last",
            type=duration,
            default=seconds(default),
            metavar="TIME",
            help=f"how far back to look (default: {default})",
        )
    for name in ("worst", "weeks", "capacity", "slo"):
        found[name].add_argument("--until", default="now", metavar="TIME", help="end of the time range (default: now)")


def run(args: argparse.Namespace) -> int:
    """Answer the question and print it.

    Raises:
        AckscopeError: a time, a cluster or the rollups cannot be used.
    """
    master, root = check_master(args.master), args.rollups.absolute()
    cluster, now = require_cluster(root, args.cluster), SystemClock().now().wall
    if args.question == "backtest":
        return _show_backtest(root, cluster, as_json=args.json)
    with graceful(partial(spark_session, master), "nothing was changed; run it again") as (_stop, session):
        answer = _ask_small_tables(args, root, cluster, now) or _ask_spark(args, root, cluster, now, session)
    if args.json:
        print_json({"cluster": cluster, **answer.document()})
    else:
        print(render(answer))
    return 0


def _show_backtest(root: Place, cluster: str, *, as_json: bool) -> int:
    result = result_file.read(root, cluster)
    if result is None:
        raise DataError(f"no backtest of {cluster} yet; run `ackscope pipeline backtest --rollups {root}`")
    if as_json:
        print_json(result)
    else:
        print(report.render(result))
    return 0


def _ask_small_tables(args: argparse.Namespace, root: Place, cluster: str, now: float) -> HistoryAnswer | None:
    """Questions about tables so small that Java would take longer to start than to answer."""
    if args.question == "changed":
        return changed(root, cluster, parse_moment(args.at, now), args.around, now)
    if args.question == "finding":
        return finding(root, cluster, args.rule, args.name, now)
    return None


def _ask_spark(
    args: argparse.Namespace, root: Place, cluster: str, now: float, session: SessionFactory
) -> HistoryAnswer:
    ask = _ask(args, parse_moment(args.until, now, "--until"))
    reader = RollupReader.of(root, cluster)
    with session() as spark:
        return ask(spark, reader)


def _ask(args: argparse.Namespace, end: float) -> _Question:
    if args.question == "weeks":
        return partial(weeks, end=end)
    start = end - args.last
    if args.question == "worst":
        return partial(worst, by=args.by, start=start, end=end)
    if args.question == "capacity":
        if args.backlog is not None and args.backlog < 1:
            raise UsageError(f"invalid --backlog {args.backlog}; use a number of messages, such as 100000")
        return partial(capacity, start=start, end=end, backlog=args.backlog)
    return partial(slo, start=start, end=end, threshold=args.under, target=args.target)


def _positive_duration(text: str) -> float:
    value = seconds(text)
    if value <= 0:
        raise ValueError(f"invalid duration {text!r}; use 100ms, 1h or 7d")
    return value


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip("% ")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise ValueError(f"invalid percentage {text!r}; use a number above 0 and below 100, such as 99.9")
    return value
