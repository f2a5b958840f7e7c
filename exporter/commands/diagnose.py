"""`ackscope diagnose`: two looks at a broker, and a ranked answer; or a look every few seconds; or at a bundle."""

import argparse
import shutil
import sys
from pathlib import Path

from ackscope.cli import argument, print_json, seconds
from ackscope.errors import DataError, UsageError
from ackscope.findings import DiagnosisResult, exit_code
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from exporter.api import cluster_findings
from exporter.broker.snapshot_builder import raise_if_unreadable
from exporter.bundle import Bundle, unpack
from exporter.commands import rollups
from exporter.commands.looking import Looking, looking
from exporter.commands.report import report
from exporter.commands.watch import watch

APART = 6.0
"""Seconds between the two looks: the broker refreshes its figures every 5 s, so nearer ones show no difference."""

_SHORTEST, _LONGEST = 8.0, 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    seen = parser.add_mutually_exclusive_group(required=True)
    seen.add_argument("--management", metavar="URL", help="http://user:password@host:15672")
    seen.add_argument(
        "--bundle", metavar="FILE", type=Path, help="judge what `ackscope bundle` saved; no broker needed"
    )
    parser.add_argument(
        "--amqp",
        metavar="URL",
        help="also look as a client: small probes run meanwhile; their queues expire after 30 minutes",
    )
    parser.add_argument(
        "--within",
        metavar="TIME",
        type=argument(seconds),
        default=15.0,
        help=f"longest time to take, {_SHORTEST:.0f}s to {_LONGEST:.0f}s (15s)",
    )
    parser.add_argument("--watch", action="store_true", help="go on looking every 5 s, and tell what changes")
    parser.add_argument(
        "--all", action="store_true", help="also tell in full what is information only, and what is left alone"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of text; a line each with --watch"
    )
    rollups.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Look, wait, look again, and say what is wrong; the result is the verdict's exit code.

    Raises:
        UsageError: an address or a duration makes no sense.
        DataError: the bundle, or the rollups, cannot be read.
        BrokerError: the broker cannot be read at all.
    """
    if args.bundle is not None:
        return _replay(args)
    if not _SHORTEST <= args.within <= _LONGEST:
        raise UsageError(f"--within: must be {_SHORTEST:.0f}s to {_LONGEST:.0f}s: two looks {APART:.0f} s apart")
    usual = rollups.usual(args)
    if args.watch:
        with looking(args.management, args.amqp) as look:
            return watch(look, usual, as_json=args.json, everything=args.all)
    with looking(args.management, args.amqp) as look:
        two_looks(look, args.within)
        now = look.clock.now()
        seen = Bundle(
            window=look.window,
            outcomes=look.outcomes,
            now=now,
            thresholds=Thresholds.one_shot(),
            baselines=usual.at(now.wall) if usual else None,
        )
    verdict = _judged(seen)
    latest = seen.window.latest
    if not verdict.findings and latest is not None:
        raise_if_unreadable(latest)
    return _tell(seen, verdict, args)


def two_looks(look: Looking, within: float) -> None:
    """Read everything twice, far enough apart to compare.

    Raises:
        BrokerError: nothing can be read, and no probe runs.
    """
    began = look.clock.now()
    first = look.look((within - APART) / 2)
    look.wait(first.taken, APART)
    look.look(max(1.0, within - 0.5 - look.clock.now().since(began)))


def _replay(args: argparse.Namespace) -> int:
    if args.amqp is not None or args.watch or args.rollups is not None or args.cluster is not None:
        raise UsageError("--bundle: tells of what was; leave --amqp, --watch, --rollups and --cluster out")
    try:
        seen = unpack(args.bundle.read_bytes())
    except OSError as error:
        raise DataError(f"{args.bundle}: {error.strerror}; name a file that `ackscope bundle` made") from None
    except DataError as error:
        raise DataError(f"{args.bundle}: {error}") from None
    return _tell(seen, _judged(seen), args)


def _judged(seen: Bundle) -> DiagnosisResult:
    return diagnose(seen.window, seen.outcomes, seen.now, seen.thresholds, baselines=seen.baselines)


def _tell(seen: Bundle, verdict: DiagnosisResult, args: argparse.Namespace) -> int:
    latest = seen.window.latest
    if args.json:
        print_json({"now": seen.now.iso(), "clusters": [cluster_findings(verdict.cluster, latest, verdict, seen.now)]})
    else:
        broker = latest.broker if latest else None
        columns = shutil.get_terminal_size().columns
        sys.stdout.write(report(verdict, broker, seen.outcomes, columns, everything=args.all))
    return exit_code([verdict])
