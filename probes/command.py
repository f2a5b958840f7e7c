"""`ackscope probe`: runs one probe now and prints the measurements of a client."""

import argparse
from typing import get_args

from ackscope.cli import argument, nearest, seconds
from ackscope.errors import UsageError
from probes import cleanup, compare, one_shot, prefetch, prefetch_report
from probes.catalogue import PROBES
from probes.catalogue.confirm import PROBE as CONFIRM
from probes.catalogue.confirm import ConfirmStreamName
from probes.catalogue.probe import QueueType
from probes.instrument import freeze_interpreter
from probes.options import RATE, refuse_useless, settings_of
from probes.server_options import AMQP_HELP, add_server_options, server_of
from probes.settings import DEFAULT_PREFIX

_LIST = "\n".join(f"  {name:<12} {probe.summary}" for name, probe in PROBES.items())
_EPILOG = f"""probes:
{_LIST}
  sweep        not a probe: deletes queues of the continuous probes of --prefix
               (stop their exporter first, or it declares them again)

The probes over AMQP 1.0 need RabbitMQ 4.0 or later, and the extra "amqp10".
The probe streaming needs the plugin rabbitmq_stream, and the extra "streams".

exit code:
  0  measured; every message and step succeeded
  1  measured; some failed, or a stream could not be measured
  3  nothing measured (no connection, access refused, wrong usage)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", help=f"the probe: {', '.join(PROBES)}; or {cleanup.NAME}")
    parser.add_argument(
        "--amqp",
        required=True,
        metavar="URL",
        help=AMQP_HELP,
    )
    add_server_options(parser)
    parser.add_argument(
        "--for",
        dest="duration",
        type=argument(seconds),
        metavar="TIME",
        help="how long to measure (default 10s; prefetch 40s)",
    )
    parser.add_argument("--rate", type=float, help=f"messages per second of each stream (default {RATE:g})")
    parser.add_argument(
        "--every", type=argument(seconds), metavar="TIME", help="interval between rounds (default 500ms; rtt 50ms)"
    )
    parser.add_argument(
        "--queue-type",
        action="append",
        choices=get_args(QueueType),
        help="queue type; repeatable (default: all)",
    )
    parser.add_argument(
        "--stream",
        action="append",
        choices=get_args(ConfirmStreamName),
        metavar="NAME",
        help=f"confirm probe: {', '.join(get_args(ConfirmStreamName))}; repeatable (default: all)",
    )
    compare.add_arguments(parser)
    parser.add_argument("--payload", type=int, metavar="BYTES", help="message size (default 64)")
    parser.add_argument(
        "--processing",
        type=argument(seconds),
        metavar="TIME",
        help="prefetch probe: simulated work for each message (default 5ms)",
    )
    parser.add_argument(
        "--prefetch", metavar="N,N,...", help="prefetch probe: values to measure, such as 1,10,100,unlimited"
    )
    parser.add_argument(
        "--stream-port",
        type=int,
        metavar="PORT",
        help="streaming probe: port of the stream protocol (default 5552; 5551 with amqps://)",
    )
    parser.add_argument("--prefix", default=DEFAULT_PREFIX, help=f"prefix of queue names (default {DEFAULT_PREFIX})")
    parser.add_argument(
        "--node", action="append", metavar="NAME", help="sweep: also the queues for this node of amqp.nodes"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the probe, print its report, and delete its queues.

    Raises:
        UsageError: the arguments are invalid.
        BrokerError: the broker cannot be used.
    """
    known = [*PROBES, cleanup.NAME]
    if args.name not in known:
        raise UsageError(f"unknown probe {args.name!r}{nearest(args.name, known)}; known: {', '.join(known)}")
    if args.name == cleanup.NAME:
        return cleanup.run(args, server_of(args))
    if args.node:
        raise UsageError(f"--node: only for {cleanup.NAME}; otherwise give the address of the node as --amqp")
    refuse_useless(args)
    if args.duration is None:
        args.duration = PROBES[args.name].one_shot.duration
    if not args.duration:
        raise UsageError("--for: must be longer than 0")
    settings, server = settings_of(args), server_of(args)
    freeze_interpreter()
    if args.strategy:
        return compare.run(args, settings.of(CONFIRM), server)
    if args.name == prefetch.NAME:
        return prefetch_report.run(args, settings, server)
    return one_shot.run(args, settings, server)
