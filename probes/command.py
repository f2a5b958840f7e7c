"""`ackscope probe`: run one probe now and print what a client lives through."""

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, get_args

from pydantic import ValidationError

from ackscope.cli import argument, nearest, print_json, seconds
from ackscope.clock import SystemClock
from ackscope.errors import UsageError
from ackscope.settings import secret
from probes.instrument import LoopLag, calm, new_loop
from probes.link import Link
from probes.report import StreamReport, text
from probes.runner import PROBES, Runner
from probes.settings import DEFAULT_PREFIX, AmqpSettings, ProbesSettings, QueueType, Server
from probes.stream import Context, Stream
from probes.sweep import sweep
from probes.wire import Batch

_RATE = 50.0
_UNDECIDED = 10.0

_EXIT_CODES = """exit code:
  0  measured; every message was acked, and delivered where that was awaited
  1  measured; some messages were not, or a queue type could not be measured
  3  could not measure anything (no connection, refused, wrong usage)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXIT_CODES
    parser.add_argument("name", metavar="NAME", help=f"which probe: {', '.join(PROBES)}")
    parser.add_argument(
        "--amqp",
        required=True,
        metavar="URL",
        help="amqp://user:password@host:5672/vhost, or amqps://; the password is better given by --password-file",
    )
    parser.add_argument("--password-file", type=Path, help="file with the password on its first line")
    parser.add_argument("--ca-file", type=Path, help="PEM file of the authority that signed the broker's certificate")
    parser.add_argument("--no-verify", action="store_true", help="do not check the broker's certificate")
    parser.add_argument(
        "--for", dest="duration", type=argument(seconds), default=10.0, metavar="TIME", help="how long (default 10s)"
    )
    parser.add_argument(
        "--rate", type=float, default=_RATE, help=f"messages per second and queue type (default {_RATE:g})"
    )
    parser.add_argument(
        "--queue-type",
        action="append",
        choices=get_args(QueueType),
        help="may be given more than once (default: all)",
    )
    parser.add_argument("--payload", type=int, default=64, metavar="BYTES", help="size of a body (default 64)")
    parser.add_argument("--prefix", default=DEFAULT_PREFIX, help=f"of queue names (default {DEFAULT_PREFIX})")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Measure, report, and leave nothing behind."""
    if args.name not in PROBES:
        raise UsageError(f"no probe {args.name!r}{nearest(args.name, list(PROBES))}; known: {', '.join(PROBES)}")
    if not args.duration:
        raise UsageError("--for: must be longer than 0")
    settings, server = _settings(args), _server(args)
    calm()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        product, reports, left = runner.run(_measure(args, settings, server))
    for sentence in left:
        print(f"ackscope probe: {sentence}", file=sys.stderr)
    address = server.address.where
    if args.json:
        print_json(
            {
                "probe": args.name,
                "broker": product,
                "address": address,
                "seconds": args.duration,
                "streams": [report.document() for report in reports],
            }
        )
    else:
        print(text(address, product, args.name, reports))
    return _exit_code(reports)


def _exit_code(reports: Sequence[StreamReport]) -> int:
    if not any(report.measured for report in reports):
        return 3
    return 0 if all(report.clean for report in reports) else 1


def _settings(args: argparse.Namespace) -> ProbesSettings:
    stream: dict[str, Any] = {
        "rate": args.rate,
        "payload_bytes": args.payload,
        "undecided_after": _UNDECIDED,
        "max_outstanding": 10_000,
    }
    if args.queue_type:
        stream["queue_types"] = tuple(dict.fromkeys(args.queue_type))
    if args.name == "delivery":
        stream |= {"missing_after": _UNDECIDED, "prefetch": 1000}
    try:
        return ProbesSettings.model_validate({"enabled": (args.name,), "prefix": args.prefix, args.name: stream})
    except ValidationError as error:
        first = error.errors()[0]
        options = {"rate": "--rate", "payload_bytes": "--payload", "prefix": "--prefix"}
        option = options.get(str(first["loc"][-1]), str(first["loc"][-1]))
        raise UsageError(f"{option}: {first['msg'].lower()}") from None


def _server(args: argparse.Namespace) -> Server:
    password = secret(None, args.password_file, "--password-file")
    if args.amqp.startswith("amqp://") and (args.ca_file or args.no_verify):
        raise UsageError("--ca-file and --no-verify: an amqp:// address uses no TLS; write amqps://")
    try:
        settings = AmqpSettings.model_validate(
            {"url": args.amqp, "password": password, "ca_file": args.ca_file, "verify": not args.no_verify}
        )
    except ValidationError as error:
        raise UsageError(f"--amqp: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    return settings.server()


async def _measure(
    args: argparse.Namespace, settings: ProbesSettings, server: Server
) -> tuple[str, list[StreamReport], list[str]]:
    """Run the streams, and sweep; product of the broker, a report a stream, and what could not be swept."""
    loop, stop, clock = asyncio.get_running_loop(), asyncio.Event(), SystemClock()
    random = Random(secrets.randbits(64))  # noqa: S311  spreads send times, guards nothing
    first = await Link.open(server, f"ackscope-probe {args.name}")
    await first.close()
    lag = LoopLag(loop.time(), span=None)
    context = Context(
        cluster=server.address.where,
        server=server,
        prefix=settings.prefix,
        run_id=secrets.token_hex(8),
        lag=lag,
        random=random,
        once=True,
    )
    streams = PROBES[args.name](settings, context)
    progress = _Progress(streams, args.duration)
    runner = Runner(streams, clock=clock, lag=lag, random=random, emit=progress.show, grace=_UNDECIDED + 1.0)
    loop.call_later(args.duration, stop.set)
    try:
        await runner.run(stop)
    finally:
        progress.clear()
        queues = [stream.book.who.queue for stream in streams]
        left = await sweep(server, queues, prefix=context.prefix, run_id=context.run_id)
    now = clock.now()
    return first.product, [StreamReport(stream.book, stream.book.outcome(now)) for stream in streams], left


class _Progress:
    """One line on stderr that says how far the run is; nothing where stderr is no terminal."""

    def __init__(self, streams: Sequence[Stream], duration: float) -> None:
        self._streams, self._duration = streams, duration
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._on = os.isatty(sys.stderr.fileno())

    def show(self, batch: Batch) -> None:
        """Show it, when a stream has told its state."""
        if self._on and batch.outcomes:
            counts = ", ".join(f"{stream.book.who.queue_type} {stream.book.state}" for stream in self._streams)
            gone = min(self._duration, self._loop.time() - self._start)
            print(f"\r{gone:4.0f} of {self._duration:g} s: {counts}\033[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave no trace of it."""
        if self._on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
