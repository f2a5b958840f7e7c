"""`ackscope probe`: runs one probe now and prints the measurements of a client."""

import argparse
from typing import get_args

from ackscope.cli import argument, nearest, seconds
from ackscope.errors import UsageError
from probes import cleanup, compare, one_shot, prefetch, prefetch_report
from probes.instrument import freeze_interpreter
from probes.options import ONE_SHOTS, RATE, refuse_useless, settings_of
from probes.runner import PROBES
from probes.server_options import AMQP_HELP, add_server_options, server_of
from probes.settings import DEFAULT_PREFIX, ConfirmStreamName, QueueType

_EPILOG = """probes:
  handshake    name resolution, TCP, TLS, AMQP and channel, each timed
  rtt          round trip of a passive declare, which changes nothing
  confirm      from publish to confirm, by the streams of --stream
  delivery     from publish to delivery to ack
  redelivery   requeue by nack, closed channel, lost connection; dead letters
  prefetch     throughput of a consumer at several prefetch values; recommends one
  nack         a full queue that must refuse messages
  settle       over AMQP 1.0: from publish to settlement
  reject       over AMQP 1.0: a full queue that must reject messages
  outcomes     over AMQP 1.0: messages accepted, rejected, released, modified;
               credit, drain, closed link, deleted queue, lost connection
  sweep        not a probe: deletes queues of the continuous probes of --prefix
               (stop their exporter first, or it declares them again)

The probes over AMQP 1.0 need RabbitMQ 4.0 or later, and the extra "amqp10".

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
        args.duration = ONE_SHOTS[args.name].duration
    if not args.duration:
        raise UsageError("--for: must be longer than 0")
    settings, server = settings_of(args), server_of(args)
    freeze_interpreter()
    if args.strategy:
        return compare.run(args, settings.confirm, server)
    if args.name == prefetch.NAME:
        return prefetch_report.run(args, settings, server)
    return one_shot.run(args, settings, server)
