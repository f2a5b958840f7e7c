"""A broker that is stopped for two seconds: all messages due meanwhile must show the stall."""

import argparse
import signal
import time
from collections.abc import Sequence
from typing import Any

from ackscope.records import MessageRecord, Outcome
from bench.bench import Bench, Document, add_seconds, progress
from bench.probes.child import ProbeProcess, confirm_settings
from bench.tables import ms, quantile, table
from lab.cluster import Lab, start_lab

RATE, STALL = 200.0, 2.0
_SLACK = 0.02
"""Seconds by which clocks may differ, and within which the broker stops."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    add_seconds(parser, 8, "the run, beside the stall")


def measure(args: argparse.Namespace) -> Document:
    """Run once per stream."""
    with start_lab(args.broker) as lab:
        rows = [_row(lab, stream, args.seconds) for stream in ("classic", "quorum")]
        return {"broker": lab.broker, "rate": RATE, "stall": STALL, "rows": rows}


def _row(lab: Lab, stream: str, seconds: float) -> dict[str, Any]:
    progress(f"{stream}: the broker stops for {STALL:g} s")
    node = lab.processes[0]
    with ProbeProcess(lab.nodes[0].amqp, confirm_settings([stream], RATE)) as probe:
        probe.wait_running()
        time.sleep(seconds / 2)
        began = time.time()
        node.signal(signal.SIGSTOP)
        try:
            time.sleep(STALL)
        finally:
            node.signal(signal.SIGCONT)
            ended = time.time()
        time.sleep(seconds / 2)
    outcome = probe.confirm(stream)
    return {
        "stream": stream,
        **carried(probe.messages, began, ended),
        "reported": {"count": outcome.response.count, "p99": outcome.response.p99, "max": outcome.response.max},
    }


def carried(records: Sequence[MessageRecord], began: float, ended: float) -> dict[str, Any]:
    """Return what the messages around a stall show.

    Args:
        records: all records of the run.
        began: when the broker stopped, wall clock.
        ended: when it continued.
    """
    during = [record for record in records if began + _SLACK <= record.intended_at < ended - _SLACK]
    # Messages due during the stall cannot be answered before the broker continues.
    short = [
        record for record in during if record.response is None or record.response < ended - record.intended_at - _SLACK
    ]
    responses = [record.response for record in records if record.response is not None]
    tags = sorted(record.seq for record in records)
    return {
        "messages": len(records),
        "during": len(during),
        "carry": len(during) - len(short),
        "expected": (ended - began - 2 * _SLACK) * RATE,
        "max": quantile(responses, 1.0),
        "p99": quantile(responses, 0.99),
        "acked": sum(record.outcome is Outcome.ACKED for record in records),
        "missing": len(set(range(1, len(tags) + 1)) - set(tags)),
    }


def lines(document: Document) -> list[str]:
    """The table."""
    head = ("stream", "messages", "acked", "missing", "in the stall", "carry it", "p99 ms", "max ms")
    rows = [
        (
            row["stream"],
            str(row["messages"]),
            str(row["acked"]),
            str(row["missing"]),
            f"{row['during']} of {row['expected']:.0f}",
            str(row["carry"]),
            ms(row["reported"]["p99"]),
            ms(row["reported"]["max"]),
        )
        for row in document["rows"]
    ]
    return [
        f"RabbitMQ {document['broker']}, {document['rate']:g}/s, stopped for {document['stall']:g} s",
        "p99 and max: response times as the probe reports them",
        "",
        *table(head, rows),
    ]


BENCH = Bench(
    name="stall",
    shows="a broker that stops for 2 s: who carries it, and that nobody is missing",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "4"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
