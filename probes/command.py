"""`ackscope probe`: run one probe now and print what a client lives through."""

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
  rtt          a question that changes nothing, and its answer
  confirm      publish to confirm, along the paths that --stream names
  delivery     publish to deliver to ack
  redelivery   requeue by nack, closed channel, lost connection; dead letters
  prefetch     a consumer with one prefetch after the other: which one to set
  nack         a queue that must refuse
  sweep        no probe: deletes what the continuous probes of --prefix made
               (stop their exporter first, or they make it again)

exit code:
  0  measured; every message and step ended as it should
  1  measured; some did not, or a stream could not be measured
  3  could not measure anything (no connection, refused, wrong usage)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", help=f"which probe: {', '.join(PROBES)}; or {cleanup.NAME}")
    parser.add_argument(
        "--amqp",
        required=True,
        metavar="URL",
        help=AMQP_HELP,
    )
    add_server_options(parser)
    parser.add_argument(
        "--for", dest="duration", type=argument(seconds), metavar="TIME", help="how long (default 10s; prefetch 40s)"
    )
    parser.add_argument("--rate", type=float, help=f"messages per second and stream (default {RATE:g})")
    parser.add_argument(
        "--every", type=argument(seconds), metavar="TIME", help="from one round to the next (default 500ms; rtt 50ms)"
    )
    parser.add_argument(
        "--queue-type",
        action="append",
        choices=get_args(QueueType),
        help="may be given more than once (default: all)",
    )
    parser.add_argument(
        "--stream",
        action="append",
        choices=get_args(ConfirmStreamName),
        metavar="NAME",
        help=f"of the confirm probe: {', '.join(get_args(ConfirmStreamName))}; may be given more than once "
        "(default: all)",
    )
    compare.add_arguments(parser)
    parser.add_argument("--payload", type=int, metavar="BYTES", help="size of a body (default 64)")
    parser.add_argument(
        "--processing",
        type=argument(seconds),
        metavar="TIME",
        help="of the prefetch probe: work a message (default 5ms)",
    )
    parser.add_argument(
        "--prefetch", metavar="N,N,...", help="of the prefetch probe: values to measure, such as 1,10,100,unlimited"
    )
    parser.add_argument("--prefix", default=DEFAULT_PREFIX, help=f"of queue names (default {DEFAULT_PREFIX})")
    parser.add_argument(
        "--node", action="append", metavar="NAME", help="of sweep: also what was made for this node of amqp.nodes"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Measure, report, and leave nothing behind.

    Raises:
        UsageError: what was asked for makes no sense.
        BrokerError: the broker cannot be used.
    """
    known = [*PROBES, cleanup.NAME]
    if args.name not in known:
        raise UsageError(f"no probe {args.name!r}{nearest(args.name, known)}; known: {', '.join(known)}")
    if args.name == cleanup.NAME:
        return cleanup.run(args, server_of(args))
    if args.node:
        raise UsageError(f"--node: only {cleanup.NAME} has a use for it; give the node's own address as --amqp")
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
