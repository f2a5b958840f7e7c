"""`ackscope diagnose`: a ranked diagnosis from two snapshots of a broker, from continuous polling, or from a bundle."""

import argparse
import shutil
import signal
import sys
from pathlib import Path
from queue import Empty

from ackscope.cli import argument, print_json, seconds
from ackscope.errors import DataError, UsageError
from ackscope.findings import DiagnosisResult, exit_code
from ackscope.format import plural
from ackscope.unix_signals import UnixSignals
from diagnosis.brief import may_be_losing, unsettled
from diagnosis.text import MANAGEMENT, Cluster, render_result
from diagnosis.thresholds import Thresholds
from exporter.api.bundle import DiagnosisBundle, judge, unpack_bundle
from exporter.api.documents import cluster_findings
from exporter.broker.snapshot_builder import raise_if_unreadable
from exporter.commands import rollups
from exporter.commands.observer import BrokerObserver, observe
from exporter.commands.report import report
from exporter.commands.watch import EVERY, watch

APART = 10.0
"""Seconds between the two snapshots: two periods of 5 s after which the broker refreshes its counters.

The increase of a counter belongs to whole periods. After 6 s it is that of one period or of two, so a rate would be
17 % too low or 67 % too high; closer snapshots show no difference.
"""
_LEAST_APART = 6.0
"""Seconds between the two if `--within` leaves no time for more."""

_SHORTEST, _USUAL, _LONGEST = 8.0, 50.0, 300.0
"""Limits of --within in seconds. The usual one is enough to be certain of a standstill (40 s), whatever the broker
reports about the time before: it renews `idle_since` of a hung channel once a minute."""

_UNDECIDED = (0, 3)
"""Exit codes without a finding that is more than information."""

_TWO_LOOKS = 15.0
"""Time limit of the two snapshots, in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "exit code: 2 critical finding, 1 warning, 3 neither but something could not be read or judged, 0 none of these"
    )
    parser.add_argument("--management", metavar="URL", help="http://user:password@host:15672")
    parser.add_argument(
        "--prometheus",
        metavar="URL",
        nargs="+",
        default=[],
        help="Prometheus endpoint of each node, http://host:15692: the only source, or with --management the source of "
        "figures if the broker keeps no statistics, and of the totals of AMQP 1.0 clients; by default port 15692 of "
        "each node, which is read if the broker keeps no statistics, or for the exchanges that channels publish to",
    )
    parser.add_argument(
        "--bundle", metavar="FILE", type=Path, help="diagnose a file saved by `ackscope bundle`; needs no broker"
    )
    parser.add_argument(
        "--amqp",
        metavar="URL",
        help="AMQP URL; also run small probes meanwhile; their queues expire after 30 minutes",
    )
    parser.add_argument(
        "--within",
        metavar="TIME",
        type=argument(seconds),
        default=_USUAL,
        help=f"time limit, {_SHORTEST:.0f}s to {_LONGEST / 60:.0f}m (default: {_USUAL:.0f}s); it ends after about 12 s "
        "unless a finding needs longer to be certain, or messages may be missing",
    )
    parser.add_argument("--watch", action="store_true", help="keep polling every 5 s and print changes")
    parser.add_argument(
        "--all", action="store_true", help="also show informational findings and suppressed ones in full"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of text; one per line with --watch"
    )
    rollups.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose a broker by two snapshots or more, a bundle, or continuously with --watch. Returns the exit code.

    Raises:
        UsageError: no source, invalid address or duration.
        DataError: the bundle or the rollups cannot be read.
        BrokerError: the broker cannot be read at all.
    """
    if args.bundle is not None:
        return _replay(args)
    if args.management is None and not args.prometheus:
        raise UsageError("no source; give --management URL, --prometheus URL of each node, or --bundle FILE")
    if not _SHORTEST <= args.within <= _LONGEST:
        raise UsageError(
            f"--within: must be {_SHORTEST:.0f}s to {_LONGEST / 60:.0f}m, because two snapshots are taken "
            f"{_LEAST_APART:.0f} to {APART:.0f} s apart"
        )
    usual = rollups.baselines_from(args)
    if args.watch:
        with observe(args.management, args.amqp, args.prometheus) as look:
            return watch(look, usual, as_json=args.json, everything=args.all)
    with observe(args.management, args.amqp, args.prometheus) as look:
        seen, verdict = look_until_certain(look, usual, args.within)
    return _print(seen, verdict, args, look.management)


def look_until_certain(
    look: BrokerObserver, usual: rollups.RollupBaselines | None, within: float
) -> tuple[DiagnosisBundle, DiagnosisResult]:
    """Take two snapshots, and more while that can settle a finding.

    Args:
        look: the observed broker.
        usual: baselines, if there are any.
        within: time limit in seconds.

    Raises:
        BrokerError: the broker cannot be read at all.
    """
    began = look.clock.now()
    _note(f"reading {look.cluster}, about {min(APART + 2, within):.0f} s")
    two_looks(look, min(within, _TWO_LOOKS))
    seen, verdict = _judge_so_far(look, usual)
    looked_on = False
    with UnixSignals((signal.SIGINT, signal.SIGTERM)) as signals:
        while _continues(look, verdict, left := within - look.clock.now().since(began)):
            if not looked_on:
                _note_progress(verdict, left)
            looked_on = True
            if _ended_by(signals, look):
                break
            look.look(EVERY)
            seen, verdict = _judge_so_far(look, usual)
    latest = seen.window.latest
    if not verdict.findings and latest is not None:
        raise_if_unreadable(latest)
    return seen, verdict


def _judge_so_far(
    look: BrokerObserver, usual: rollups.RollupBaselines | None
) -> tuple[DiagnosisBundle, DiagnosisResult]:
    now = look.clock.now()
    seen = DiagnosisBundle(
        window=look.window,
        outcomes=look.outcomes,
        now=now,
        thresholds=Thresholds.brief(),
        baselines=usual.at(now.wall) if usual else None,
    )
    return seen, judge(seen)


def _continues(look: BrokerObserver, verdict: DiagnosisResult, left: float) -> bool:
    """Return whether more snapshots can settle a finding in the seconds that are left."""
    if left < EVERY + 1.0:
        return False
    if unsettled(verdict, left - 1.0):
        return True
    latest = look.window.snapshots[-1].taken
    return exit_code([verdict]) in _UNDECIDED and may_be_losing(look.window, latest, verdict)


def _note_progress(verdict: DiagnosisResult, left: float) -> None:
    found = len(unsettled(verdict, left - 1.0))
    why = f"{plural(found, 'finding')} too recent to be certain" if found else "messages may be missing"
    _note(f"{why}; looking for up to {left:.0f} s more (Ctrl-C ends)")


def _note(text: str) -> None:
    """Tell a person that waits; a program gets the result only."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def _ended_by(signals: UnixSignals, look: BrokerObserver) -> bool:
    """Wait until the next snapshot is due. Returns whether Ctrl-C or SIGTERM arrived."""
    latest = look.window.snapshots[-1].taken
    try:
        signals.get(timeout=max(0.0, EVERY - look.clock.now().since(latest)))
    except Empty:
        return False
    return True


def two_looks(look: BrokerObserver, within: float) -> None:
    """Take two snapshots, far enough apart to compare.

    Raises:
        BrokerError: nothing can be read, and no probe runs.
    """
    began = look.clock.now()
    apart = min(APART, max(_LEAST_APART, within - 2.0))
    first = look.look((within - apart) / 2)
    look.wait(first.taken, apart)
    look.look(max(1.0, within - 0.5 - look.clock.now().since(began)))


def _replay(args: argparse.Namespace) -> int:
    if args.management is not None or args.prometheus:
        raise UsageError("--bundle: a bundle is from the past; remove --management and --prometheus")
    if args.amqp is not None or args.watch or args.rollups is not None or args.cluster is not None:
        raise UsageError("--bundle: a bundle is from the past; remove --amqp, --watch, --rollups and --cluster")
    try:
        seen = unpack_bundle(args.bundle.read_bytes())
    except OSError as error:
        raise DataError(f"{args.bundle}: {error.strerror}; give a file that `ackscope bundle` made") from None
    except DataError as error:
        raise DataError(f"{args.bundle}: {error}") from None
    return _print(seen, judge(seen), args)


def _print(
    seen: DiagnosisBundle, verdict: DiagnosisResult, args: argparse.Namespace, management: str = MANAGEMENT
) -> int:
    if args.json:
        entry = cluster_findings(verdict.cluster, seen.window.latest, verdict, seen.now, management)
        # Of one cluster: its findings at the top as well, so that a script need not know about clusters.
        print_json({"now": seen.now.iso(), "clusters": [entry], "findings": entry["findings"]})
    else:
        sys.stdout.write(terminal_report(seen, verdict, management, everything=args.all))
    return exit_code([verdict])


def terminal_report(
    seen: DiagnosisBundle, verdict: DiagnosisResult, management: str = MANAGEMENT, *, everything: bool = False
) -> str:
    """A diagnosis as text for this terminal; `everything` also shows information and suppressed findings in full."""
    latest = seen.window.latest
    cluster = Cluster.of(latest, management)
    broker = latest.broker if latest else None
    columns = shutil.get_terminal_size().columns
    return report(render_result(verdict, cluster), broker, seen.outcomes, columns, everything=everything)
