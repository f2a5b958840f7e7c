"""`ackscope probe confirm --strategy NAME`: compares the throughput of confirm strategies on one broker."""

import argparse
import asyncio
import secrets
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from random import Random
from typing import Any, get_args

from ackscope.cli import print_json
from ackscope.errors import UsageError
from probes.catalogue.confirm import ConfirmSettings
from probes.confirm import NAME
from probes.instrument import LoopLag, run_without_gc
from probes.probe_connection import ProbeConnection
from probes.probe_stream import StreamContext
from probes.report import wrap
from probes.self_error import duration
from probes.settings import AmqpServer
from probes.strategies import MOST_MESSAGES, WINDOW, StrategyName, StrategyResult, compare, queue_of, ratio
from probes.sweep import sweep

_BATCH = 100
_STREAMS = ("classic", "quorum")

EXPLANATION = (
    "individual: publish one, wait for its confirm. batch: publish some, wait for all",
    f"of them. async: publish while fewer than {WINDOW} are unconfirmed. Each runs as",
    f"fast as it can, for its share of the time or {MOST_MESSAGES} messages.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the comparison."""
    parser.add_argument(
        "--strategy",
        action="append",
        choices=get_args(StrategyName),
        help="confirm probe: throughput of a publisher with this confirm strategy; repeatable",
    )
    parser.add_argument(
        "--batch", type=int, default=_BATCH, metavar="N", help=f"batch strategy: messages per batch (default {_BATCH})"
    )


def run(args: argparse.Namespace, settings: ConfirmSettings, server: AmqpServer) -> int:
    """Run the comparison, print the report, and delete its queues."""
    if not 1 <= args.batch <= MOST_MESSAGES:
        raise UsageError(f"--batch: must be from 1 to {MOST_MESSAGES}")
    streams = settings.streams if args.stream or args.queue_type else _STREAMS
    strategies = tuple(dict.fromkeys(args.strategy))
    product, compared, left = run_without_gc(
        _measure(server, settings, args.prefix, streams, strategies, args.duration, args.batch)
    )
    for sentence in left:
        print(f"ackscope probe: {sentence}", file=sys.stderr)
    if args.json:
        print_json(_document(server, product, compared))
    else:
        print(text(server.address.where, product, settings.payload_bytes, compared))
    if not any(item.messages for item in compared):
        return 3
    return 0 if all(item.clean for item in compared) else 1


def text(address: str, product: str, payload_bytes: int, compared: Sequence[StrategyResult]) -> str:
    """Return the report as text, at most 80 columns wide."""
    lines = [f"confirm strategies on {product} at {address}, {payload_bytes} bytes", ""]
    for stream, items in groupby(compared, lambda item: item.stream):
        lines.append(f"  {stream:<14}{'messages':>9}{'seconds':>9}{'msg/s':>9}{'p50':>10}{'p99':>10}{'max':>10}")
        rows = list(items)
        for item in rows:
            lines += _row(item)
        factor = ratio(rows)
        lines += [f"  {factor}", ""] if factor else [""]
    return "\n".join([*lines, *EXPLANATION])


def _row(item: StrategyResult) -> list[str]:
    name = f"{item.strategy} {item.batch}" if item.strategy == "batch" else item.strategy
    speed = "-" if item.throughput is None else f"{item.throughput:.0f}"
    latencies = "".join(f"{duration(value):>10}" for value in (item.confirm.p50, item.confirm.p99, item.confirm.max))
    lines = [f"  {name:<14}{item.messages:>9}{item.seconds:>9.2f}{speed:>9}{latencies}"]
    others = {name: count for name, count in item.outcomes.items() if count and name != "acked"}
    if others:
        lines.append("    not acked: " + ", ".join(f"{name} {count}" for name, count in others.items()))
    if item.reason is not None:
        lines += wrap(f"ended early: {item.reason}")
    return lines


def _document(server: AmqpServer, product: str, compared: Sequence[StrategyResult]) -> dict[str, Any]:
    streams = groupby(compared, lambda item: item.stream)
    return {
        "probe": NAME,
        "broker": product,
        "address": server.address.where,
        "strategies": [{**asdict(item), "messages": item.messages, "throughput": item.throughput} for item in compared],
        "ratios": {stream: ratio(list(items)) for stream, items in streams},
    }


async def _measure(
    server: AmqpServer,
    settings: ConfirmSettings,
    prefix: str,
    streams: Sequence[str],
    strategies: Sequence[StrategyName],
    seconds: float,
    batch: int,
) -> tuple[str, list[StrategyResult], list[str]]:
    first = await ProbeConnection.open(server, f"ackscope-probe {NAME}")
    await first.close()
    random = Random(secrets.randbits(64))  # noqa: S311  spreads send times, guards nothing
    context = StreamContext(
        cluster=server.address.where,
        server=server,
        prefix=prefix,
        run_id=secrets.token_hex(8),
        lag=LoopLag(asyncio.get_running_loop().time(), span=None),
        random=random,
        once=True,
    )
    each = seconds / (len(streams) * len(strategies))
    specs = [queue_of(context, stream, strategy) for stream in streams for strategy in strategies]
    queues = list(dict.fromkeys(spec.name for spec in specs if spec is not None))
    try:
        compared = await compare(
            context, streams, strategies, seconds=each, payload_bytes=settings.payload_bytes, batch=batch
        )
    finally:
        left = await sweep(server, queues, prefix=prefix, run_id=context.run_id)
    return first.product, compared, left
