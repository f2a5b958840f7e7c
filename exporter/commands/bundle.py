"""`ackscope bundle`: saves the input of a diagnosis to a file, to diagnose the broker elsewhere."""

import argparse
import sys
from pathlib import Path

from ackscope.atomic_file import write_atomically
from ackscope.cli import argument, print_json, seconds
from ackscope.errors import DataError, UsageError
from ackscope.findings import DiagnosisResult
from ackscope.format import plural
from diagnosis.thresholds import Thresholds
from exporter.api.bundle import DiagnosisBundle, judge, pack_bundle
from exporter.broker.snapshot_builder import raise_if_unreadable
from exporter.commands import rollups
from exporter.commands.observer import observe
from exporter.commands.watch import EVERY

_SHORTEST, _LONGEST, _USUAL = 8.0, 3600.0, 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--management", metavar="URL", required=True, help="http://user:password@host:15672")
    parser.add_argument("--amqp", metavar="URL", help="AMQP URL; also run probes, as `ackscope diagnose` does")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="file to write, such as shop.ackscope"
    )
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="TIME",
        type=argument(seconds),
        default=_USUAL,
        help=f"how long to observe, {_SHORTEST:.0f}s to 1h (default: 30s); rules only know what happened in that time",
    )
    rollups.add_arguments(parser)
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON document")


def run(args: argparse.Namespace) -> int:
    """Observe for a while, then write the file.

    Raises:
        UsageError: invalid address, duration or file.
        BrokerError: the broker cannot be read.
        DataError: the file cannot be written, or the rollups cannot be read.
    """
    if not _SHORTEST <= args.duration <= _LONGEST:
        raise UsageError(f"--for: must be {_SHORTEST:.0f}s to {_LONGEST / 3600:.0f}h")
    if args.output.exists() and not args.force:
        raise UsageError(f"{args.output}: already exists; choose another file, or overwrite it with --force")
    usual = rollups.baselines_from(args)
    with observe(args.management, args.amqp) as look:
        began = look.clock.now()
        while True:
            at = look.clock.now()
            snapshot = look.look(EVERY * 2)
            if look.clock.now().since(began) + EVERY > args.duration:
                break
            look.wait(at, EVERY)
        raise_if_unreadable(snapshot)
        thresholds = Thresholds.brief() if args.duration < 2 * _USUAL else Thresholds()
        now = look.clock.now()
        bands = usual.at(now.wall) if usual else None
        bundle = DiagnosisBundle(
            window=look.window, outcomes=look.outcomes, now=now, thresholds=thresholds, baselines=bands
        )
    size = write_whole(args.output, pack_bundle(bundle))
    _print(args, bundle, judge(bundle), size)
    return 0


def write_whole(path: Path, content: bytes) -> int:
    """Atomically write a file that only its owner can read. Returns its size in bytes.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror}); choose a file in a directory of yours"
        ) from None
    return len(content)


def _print(args: argparse.Namespace, bundle: DiagnosisBundle, verdict: DiagnosisResult, size: int) -> None:
    looks = len(bundle.window.snapshots)
    if args.json:
        findings = [finding.rule for finding in verdict.findings]
        print_json({"file": str(args.output), "bytes": size, "looks": looks, "findings": findings})
        return
    sys.stdout.write(
        f"{args.output}: {looks} snapshots of {bundle.window.cluster}, {size / 1024:.0f} KiB, "
        f"{plural(len(verdict.findings), 'finding')}\nIt contains names of queues, users, hosts and clients, but no "
        f"messages and no passwords.\nDiagnose it anywhere: ackscope diagnose --bundle {args.output}\n"
    )
