"""Age of queues as the exporter bounds it, compared with the true age of stamped messages."""

import argparse
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, add_seconds, progress
from bench.diagnosis.stamped import TYPES, StampedQueue, stamped_queues, traffic
from bench.exporter.goals import Goal
from bench.exporting import Exporter, exporting, wait_for
from bench.tables import median, percent, quantile, table
from diagnosis.queue_age import RECENT_SECONDS
from lab.amqp import parse_lab_address
from lab.brokers import SUITES
from lab.cluster import start_lab

_LOOK = 0.5
_POLL = 5.0
"""Default poll interval of the exporter, in seconds."""
_EXACT = 0.02
"""Seconds within which the time of a poll is known."""
_HEAD = re.compile(r'ackscope_queue_head_age_seconds\{.*queue="(stamped[^"]+)",bound="(\w+)"\} (\S+)')
_SOJOURN = re.compile(
    r'ackscope_queue_sojourn_seconds\{.*queue="(stamped[^"]+)",percentile="(\d+)",bound="(\w+)"\} (\S+)'
)
_POLLED = re.compile(r'ackscope_poll_age_seconds\{.*family="queues"\} (\S+)')


class AgeReading(NamedTuple):
    """One reading of the metrics: when the broker was polled, and queue or (queue, quantile) -> bound -> seconds."""

    at: float
    ages: dict[str, dict[str, float]]
    sojourns: dict[tuple[str, float], dict[str, float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 20, 100, 500], help="messages/s (1 20 100 500)")
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES), help="kinds of queue (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the gaps between messages (1)")
    add_seconds(parser, 300.0, "the traffic on each broker")


def measure(args: argparse.Namespace) -> Document:
    """Publish stamped messages, and compare each reading of the exporter with the true age of the oldest message."""
    results: list[Document] = []
    for broker in args.broker:
        with start_lab(broker) as lab, exporting(lab.nodes[0], probes=False) as exporter:
            queues = stamped_queues(args.types, args.rates)
            progress(f"{lab.broker}: {len(queues)} queues for {args.seconds:g} s")
            wait_for(partial(_is_ready, exporter), "the first poll")
            with traffic(parse_lab_address(lab.nodes[0].amqp), queues, args.seed):
                readings = _readings(exporter, args.seconds)
            results += [_compared(lab.broker, queue, readings) for queue in queues]
    if not any(result["readings"] for result in results):
        raise BrokerError("the exporter gave no age of any queue")
    return {"seed": args.seed, "results": results, "goals": [goal.as_dict() for goal in _goals(results)]}


def _is_ready(exporter: Exporter) -> bool:
    return exporter.get("/-/ready").ok


def _readings(exporter: Exporter, seconds: float) -> list[AgeReading]:
    """Read the metrics after every poll of the exporter."""
    found: list[AgeReading] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        text, now = exporter.get("/metrics").text, time.time()
        polled = _POLLED.search(text)
        if polled is not None and (not found or now - float(polled[1]) > found[-1].at + _LOOK):
            reading = AgeReading(now - float(polled[1]), {}, {})
            for name, bound, value in _HEAD.findall(text):
                reading.ages.setdefault(name, {})[bound] = float(value)
            for name, share, bound, value in _SOJOURN.findall(text):
                reading.sojourns.setdefault((name, int(share) / 100), {})[bound] = float(value)
            found.append(reading)
        time.sleep(_LOOK)
    return found


def _compared(broker: str, queue: StampedQueue, readings: Sequence[AgeReading]) -> Document:
    """Compare the readings of one queue. A bound that is unknown is never narrow."""
    inside, widths, sojourns, missed = 0, [], [], []
    for reading in readings:
        true, bounds = queue.true_age(reading.at), reading.ages.get(queue.name)
        if true is not None and bounds is not None:
            held = _holds(bounds, true)
            inside += held
            widths.append(bounds["upper"] - bounds["lower"] if "upper" in bounds else float("inf"))
            if not held:
                missed.append({"true": true, **bounds})
        left = queue.sojourns(reading.at - RECENT_SECONDS, reading.at)
        for share in (0.5, 0.99):
            reported, real = reading.sojourns.get((queue.name, share)), quantile(left, share)
            if reported is not None and real is not None:
                sojourns.append(_holds(reported, real))
    return {
        "broker": broker,
        "kind": queue.kind,
        "rate": queue.rate,
        "published": len(queue.published),
        "readings": len(widths),
        "inside": inside,
        "narrow": sum(width < 2 * _POLL for width in widths),
        "width": median(widths),
        "sojourns": len(sojourns),
        "sojourns_inside": sum(sojourns),
        "missed": missed,
    }


def _holds(bounds: dict[str, float], true: float) -> bool:
    return bounds.get("lower", 0.0) - _EXACT <= true <= bounds.get("upper", float("inf")) + _EXACT


def _goals(results: Sequence[Document]) -> list[Goal]:
    total = sum(result["readings"] for result in results)
    outside = 1 - sum(result["inside"] for result in results) / total
    wide = 1 - sum(result["narrow"] for result in results) / total
    return [
        Goal("share of readings with the true age outside the bounds", outside, 0.05),
        Goal("share of readings with bounds of two poll intervals or more", wide, 0.2),
    ]


def lines(document: Document) -> list[str]:
    """Return a table with one row per queue."""
    rows = [
        (
            f"{result['broker']} {result['kind']} {result['rate']:g}/s",
            str(result["readings"]),
            _share(result, "inside", "readings"),
            _share(result, "narrow", "readings"),
            "-" if result["width"] is None else f"{result['width']:.1f}",
            _share(result, "sojourns_inside", "sojourns"),
        )
        for result in document["results"]
    ]
    text = table(("", "readings", "inside", "narrow", "width s", "sojourn inside"), rows)
    return [*text, "", *(Goal(**goal).line() for goal in document["goals"])]


def _share(result: dict[str, Any], part: str, whole: str) -> str:
    return percent(result[part] / result[whole] if result[whole] else None, 0)


BENCH = Bench(
    name="age",
    room="diagnosis",
    shows="bounds of the age of queues, against the true age of messages that carry their publish time",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3", "--seconds", "120"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
