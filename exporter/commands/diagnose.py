"""`ackscope diagnose`: two looks at a broker, and a ranked answer."""

import argparse
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr

from ackscope.address import parse_amqp, parse_management
from ackscope.cli import argument, print_json, seconds
from ackscope.clock import Clock, SystemClock
from ackscope.errors import UsageError
from ackscope.findings import exit_code
from ackscope.records import ProbeOutcome
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api import cluster_findings
from exporter.broker.read import raise_if_unreadable, read_once
from exporter.broker.settings import ManagementSettings
from exporter.carry import carried
from exporter.commands.report import report
from exporter.placement import place_outcomes, probe_nodes
from exporter.probe_process import Hooks, ProbeProcess
from probes.settings import AmqpSettings, ConfirmSettings, ProbesSettings
from probes.wire import Batch, Target, encode_targets

APART = 6.0
"""Seconds between the two looks: the broker refreshes its figures every 5 s, so nearer ones show no difference."""

_SHORTEST, _LONGEST = 8.0, 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--management", metavar="URL", required=True, help="http://user:password@host:15672")
    parser.add_argument(
        "--amqp",
        metavar="URL",
        help="also look as a client: a confirm probe runs meanwhile; its two small queues expire after 30 minutes",
    )
    parser.add_argument(
        "--within",
        metavar="TIME",
        type=argument(seconds),
        default=15.0,
        help=f"longest time to take, {_SHORTEST:.0f}s to {_LONGEST:.0f}s (15s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")


def run(args: argparse.Namespace) -> int:
    """Look, wait, look again, and say what is wrong; the result is the verdict's exit code.

    Raises:
        UsageError: an address or a duration makes no sense.
        BrokerError: the broker cannot be read at all.
    """
    if not _SHORTEST <= args.within <= _LONGEST:
        raise UsageError(f"--within: must be {_SHORTEST:.0f}s to {_LONGEST:.0f}s: two looks {APART:.0f} s apart")
    cluster = parse_management(args.management).where
    if args.amqp is not None:
        parse_amqp(args.amqp)
    settings, clock = ManagementSettings(url=args.management), SystemClock()
    until = clock.now().mono + args.within
    with _probing(cluster, args.amqp, clock) as outcomes:
        first = read_once(cluster, settings, clock, (args.within - APART) / 2)
        raise_if_unreadable(first)
        time.sleep(max(0.0, APART - clock.now().since(first.taken)))
        again = read_once(cluster, settings, clock, max(1.0, until - clock.now().mono - 0.5))
    second = carried(first, again)
    nodes = probe_nodes(second, ProbesSettings().prefix)
    seen = place_outcomes(outcomes.values(), nodes)
    now = clock.now()
    verdict = diagnose(Window.empty(cluster).add(first).add(second), seen, now, Thresholds.one_shot())
    if args.json:
        print_json({"now": now.iso(), "clusters": [cluster_findings(cluster, second, verdict, now)]})
    else:
        broker = second.overview.value.rabbitmq_version if second.overview.value else None
        print(report(verdict, broker, seen, shutil.get_terminal_size().columns), end="")
    return exit_code([verdict])


@contextmanager
def _probing(cluster: str, url: str | None, clock: Clock) -> Iterator[dict[str, ProbeOutcome]]:
    """Run a confirm probe meanwhile; yields its latest summary by stream, which fills as it goes."""
    outcomes: dict[str, ProbeOutcome] = {}
    if url is None:
        yield outcomes
        return

    def take(batch: Batch) -> None:
        outcomes.update({outcome.stream: outcome for outcome in batch.outcomes})

    probes = ProbesSettings(enabled=("confirm",), confirm=ConfirmSettings(streams=("classic", "quorum"), rate=10.0))
    document = encode_targets([Target(cluster, AmqpSettings(url=SecretStr(url)), probes)])
    process = ProbeProcess(document, Hooks(on_batch=take, on_start=lambda: None), clock)
    process.start()
    try:
        yield outcomes
    finally:
        process.stop()
