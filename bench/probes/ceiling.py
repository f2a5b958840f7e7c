"""The highest rate that one probe process sends on time, and what limits it."""

import argparse
import time
from typing import Any

import psutil

from bench.bench import Bench, Document, add_seconds, progress
from bench.load import Load
from bench.probes.child import ProbeProcess, confirm_settings
from bench.tables import ms, percent, quantile, table, wrap
from lab.cluster import Lab, start_lab
from probes.catalogue.probe import RATE_CAP

LIMIT = 0.001
"""A rate is held if the p99 of the send delay is below this, seconds."""

RATES = (500, 1000, 2000, 3000, 4000, RATE_CAP)
_WARM = 2.0
_BUSY = 0.9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--stream", default="classic", help="stream of the confirm probe (default classic)")
    parser.add_argument("--tries", type=int, default=2, help="runs that a rate gets to be held once (default 2)")
    add_seconds(parser, 6)


def measure(args: argparse.Namespace) -> Document:
    """Measure ascending rates until the median send delay exceeds the limit.

    A rate has several tries, because the machine may be busy for a moment.
    """
    rows: list[dict[str, Any]] = []
    with start_lab(args.broker) as lab:
        for rate in RATES:
            tries: list[dict[str, Any]] = []
            while len(tries) < args.tries and not any(each["held"] for each in tries):
                progress(f"{rate}/s")
                tries.append(_row(lab, args.stream, rate, args.seconds))
            rows.append({**min(tries, key=lambda each: each["p99"] or 0.0), "tries": len(tries)})
            if (rows[-1]["p50"] or 0.0) > LIMIT:
                break
        highest = max((row["rate"] for row in rows if row["held"]), default=0)
        beyond = [row for row in rows if row["rate"] > highest]
        return {
            "broker": lab.broker,
            "stream": args.stream,
            "cores": psutil.cpu_count() or 0,
            "rows": rows,
            "highest": highest or None,
            "limited_by": limited_by([*beyond, *rows[-1:]][0], psutil.cpu_count() or 1),
        }


def _row(lab: Lab, stream: str, rate: int, seconds: float) -> dict[str, Any]:
    with ProbeProcess(lab.nodes[0].amqp, confirm_settings([stream], rate)) as probe:
        probe.wait_running()
        time.sleep(_WARM)
        load = Load({"probe": probe.pid, "broker": lab.processes[0].pid})
        psutil.cpu_percent()
        time.sleep(seconds)
        shares, machine = load.shares(), psutil.cpu_percent() / 100
    first = min(record.intended_at for record in probe.messages)
    steady = [record for record in probe.messages if record.intended_at >= first + _WARM]
    delays = [record.send_delay for record in steady]
    p99 = quantile(delays, 0.99)
    return {
        "rate": rate,
        "messages": len(steady),
        "p50": quantile(delays, 0.5),
        "p99": p99,
        "confirm_p50": quantile([record.confirm for record in steady if record.confirm is not None], 0.5),
        "probe": shares["probe"],
        "broker": shares["broker"],
        "machine": machine,
        "held": p99 is not None and p99 < LIMIT,
    }


def limited_by(row: dict[str, Any], cores: int) -> str:
    """Return a sentence about what limits the probe at a rate that it does not hold."""
    if row["held"]:
        return f"the probes' own cap of {RATE_CAP}/s a stream: every rate up to it was held"
    probe = f"the probe process took {percent(row['probe'], 0)} of a core and the broker {percent(row['broker'], 0)}"
    if row["probe"] > _BUSY:
        return f"its own processor time: at {row['rate']}/s {probe}; it is one thread"
    if row["machine"] > _BUSY:
        others = percent(max(0.0, row["machine"] * cores - row["probe"] - row["broker"]), 0)
        return f"the machine: at {row['rate']}/s all {cores} cores were busy; {probe}, everything else {others}"
    return f"waiting for a core: at {row['rate']}/s {probe}, {percent(row['machine'], 0)} of the machine was busy"


def lines(document: Document) -> list[str]:
    """The table."""
    head = ("rate", "delay p50", "p99 ms", "confirm p50", "probe", "broker", "machine", "below 1 ms")
    rows = [
        (
            f"{row['rate']}/s",
            ms(row["p50"]),
            ms(row["p99"]),
            ms(row["confirm_p50"]),
            percent(row["probe"], 0),
            percent(row["broker"], 0),
            percent(row["machine"], 0),
            "held" if row["held"] else f"NO, {row['tries']} runs",
        )
        for row in document["rows"]
    ]
    highest = document["highest"]
    return [
        f"RabbitMQ {document['broker']} {document['stream']}, {document['cores']} cores; send delay: intended to sent",
        "probe and broker: share of one core; machine: share of all cores",
        "",
        *table(head, rows),
        "",
        *wrap(f"highest rate held: {'none' if highest is None else f'{highest}/s'}"),
        *wrap(f"limited by {document['limited_by']}", "  "),
    ]


BENCH = Bench(
    name="ceiling",
    shows="the highest rate that one probe process sends on time, beside the broker",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "3", "--tries", "2"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
