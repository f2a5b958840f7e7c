"""`ackscope probe prefetch`: reports a sweep over prefetch values as text (80 columns) and JSON."""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ackscope.cli import print_json
from ackscope.errors import UsageError
from probes.catalogue.prefetch import PROBE
from probes.instrument import run_without_gc
from probes.one_shot import once_context
from probes.prefetch_sweep import NAME, PrefetchSweep, Sweep
from probes.probe_connection import ProbeConnection
from probes.saturation import SweepPoint
from probes.self_error import duration
from probes.settings import AmqpServer, ProbesSettings
from probes.sweep import sweep

PROCESSING = 0.005
UNLIMITED = "unlimited"
VALUES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 0)

_BAR = 16
_LARGEST = 65_535
_OWN_SHARE = 0.1
_LEAST_OWN = 0.0005

EXPLANATION = (
    "busy: share of the time in which the consumer worked. waits: time from delivery",
    "to the start of work on the message. Bars: share of the best msg/s.",
)


def values(text: str) -> tuple[int, ...]:
    """Parse `--prefetch`: numbers separated by commas, and `unlimited`, which is 0.

    Raises:
        UsageError: a value is invalid.
    """
    found = []
    for word in text.split(","):
        stripped = word.strip()
        value = 0 if stripped == UNLIMITED else int(stripped) if stripped.isdecimal() and int(stripped) else -1
        if not 0 <= value <= _LARGEST:
            raise UsageError(f"--prefetch: invalid prefetch {word!r}; use 1,10,100,{UNLIMITED}")
        found.append(value)
    return tuple(dict.fromkeys(found))


def run(args: argparse.Namespace, settings: ProbesSettings, server: AmqpServer) -> int:
    """Measure all prefetch values, print the report, and delete the queues."""
    processing = PROCESSING if args.processing is None else args.processing
    wanted = VALUES if args.prefetch is None else values(args.prefetch)
    product, sweeps, left = run_without_gc(_measure(args, settings, server, processing, wanted))
    for sentence in left:
        print(f"ackscope probe: {sentence}", file=sys.stderr)
    if args.json:
        print_json(document(product, server.address.where, processing, sweeps))
    else:
        print(text(product, server.address.where, processing, sweeps))
    return 0 if all(point.messages for found in sweeps for point in found.points) else 1


def text(product: str, address: str, processing: float, sweeps: Sequence[Sweep]) -> str:
    """Return the report as text."""
    lines = [f"prefetch sweep of {product} at {address}", f"{duration(processing)} of work per message", ""]
    for found in sweeps:
        lines += [f"{found.queue_type}: round trip {duration(found.round_trip)}"]
        lines += [f"  {'prefetch':>9} {'msg/s':>7} {'':<{_BAR}} {'busy':>5}  {'unacked':>9} {'max':>5}  {'waits':>8}"]
        best = max(point.throughput for point in found.points)
        lines += [_row(point, best) for point in found.points]
        lines += ["", *_advice(found), *_own_error(found, processing), ""]
    return "\n".join([*lines, *EXPLANATION])


def document(product: str, address: str, processing: float, sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """Return the report as JSON; a prefetch of 0 means unlimited."""
    return {
        "probe": NAME,
        "broker": product,
        "address": address,
        "processing": processing,
        "sweeps": [
            {
                "queue_type": found.queue_type,
                "round_trip": found.round_trip,
                "points": [{**asdict(point), "throughput": point.throughput} for point in found.points],
                **asdict(found.advice),
            }
            for found in sweeps
        ],
    }


def _row(point: SweepPoint, best: float) -> str:
    bar = "#" * round(_BAR * point.throughput / best) if best else ""
    unacked = "-" if point.unacked_p50 is None else f"{point.unacked_p50:.0f}"
    most = "-" if point.unacked_max is None else f"{point.unacked_max:.0f}"
    return (
        f"  {_name(point.prefetch):>9} {point.throughput:>7.0f} {bar:<{_BAR}} {point.busy:>4.0%}"
        f"  {unacked:>9} {most:>5}  {duration(point.wait_p50):>8}"
    ).rstrip()


def _advice(found: Sweep) -> list[str]:
    advice = found.advice
    if advice.recommended is None or advice.knee is None:
        return ["  recommended  none", *_wrapped(f"because {advice.because}")]
    head = f"  recommended  prefetch {_name(advice.recommended)}"
    formula = "" if advice.formula is None else f", by formula {advice.formula}"
    return [f"{head} (measured knee {_name(advice.knee)}{formula})", *_wrapped(f"because {advice.because}")]


def _own_error(found: Sweep, processing: float) -> list[str]:
    work = [point.work for point in found.points if point.messages]
    if not work or not processing:
        return []
    longest = max(work)
    good = longest - processing <= max(_LEAST_OWN, _OWN_SHARE * processing)
    verdict = "good" if good else "doubtful"
    return [f"  own error    longest average work {duration(longest)}: measurement {verdict}"]


def _wrapped(sentence: str) -> list[str]:
    indent = " " * 15
    return textwrap.wrap(sentence, 78, initial_indent=indent, subsequent_indent=indent)


def _name(prefetch: int) -> str:
    return str(prefetch) if prefetch else UNLIMITED


async def _measure(
    args: argparse.Namespace, settings: ProbesSettings, server: AmqpServer, processing: float, wanted: Sequence[int]
) -> tuple[str, list[Sweep], list[str]]:
    first = await ProbeConnection.open(server, f"ackscope-probe {NAME}")
    await first.close()
    context, kinds = once_context(server, settings.prefix), settings.of(PROBE).queue_types
    each = args.duration / (len(kinds) * len(wanted))
    found: list[Sweep] = []
    queues: list[str] = []
    try:
        for kind in kinds:
            measured = PrefetchSweep(context, kind, processing, each)
            queues.append(measured.queue.name)
            if os.isatty(sys.stderr.fileno()):
                print(f"\r{kind}: {len(wanted)} values, {each:.1f} s each\033[K", end="", file=sys.stderr, flush=True)
            found.append(await measured.run(wanted))
    finally:
        if os.isatty(sys.stderr.fileno()):
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        left = await sweep(server, queues, prefix=context.prefix, run_id=context.run_id)
    return first.product, found, left
