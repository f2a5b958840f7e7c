"""CPU cost of all continuous probes at their defaults, for broker and exporter."""

import argparse
import time
from typing import Any

from bench.bench import Bench, Document, add_seconds, progress
from bench.exporting import exporting, wait_for
from bench.load import Load
from bench.tables import median, percent, table
from lab.cluster import Lab, start_lab

CLAIM = 0.03
"""Limit of the cost in cores, for the broker and for the exporter with its probe process."""

_SETTLED = 10.0
_PARTS = ("broker", "exporter", "probe")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--pairs", type=int, default=2, help="runs with and without, alternating (default 2)")
    add_seconds(parser, 20)


def measure(args: argparse.Namespace) -> Document:
    """Measure runs without and with probes, alternating, on one broker."""
    runs: dict[str, list[dict[str, Any]]] = {"without": [], "with": []}
    with start_lab(args.broker) as lab:
        for number in range(args.pairs):
            for name, each in runs.items():
                progress(f"{name} probes, {number + 1} of {args.pairs}")
                each.append(_run(lab, args.seconds, probes=name == "with"))
        middle = {
            name: {part: median([each["shares"].get(part) for each in runs[name]]) or 0.0 for part in _PARTS}
            for name in runs
        }
        added = {part: middle["with"][part] - middle["without"][part] for part in _PARTS}
        return {
            "broker": lab.broker,
            "seconds": args.seconds,
            "pairs": args.pairs,
            "streams": runs["with"][-1]["streams"],
            "failed": runs["with"][-1]["failed"],
            **middle,
            "added": added,
            "broker_within": added["broker"] < CLAIM,
            "exporter_within": added["exporter"] + added["probe"] < CLAIM,
            "runs": runs,
        }


def _run(lab: Lab, seconds: float, *, probes: bool) -> dict[str, Any]:
    with exporting(lab.nodes[0], probes=probes) as exporter:
        parts = {"broker": lab.processes[0].pid, "exporter": exporter.process.pid}
        if probes:
            parts["probe"] = wait_for(exporter.probe_pid, "the probe process")
        time.sleep(_SETTLED)
        load = Load(parts)
        time.sleep(seconds)
        shares = load.shares()
        outcomes = exporter.probes() if probes else []
    return {
        "shares": shares,
        "streams": [f"{each['probe']} {each['stream']}" for each in outcomes],
        "failed": [f"{each['probe']} {each['stream']}: {each['reason']}" for each in outcomes if not each["success"]],
    }


def lines(document: Document) -> list[str]:
    """The table."""
    head = ("share of one core", "broker", "exporter", "probe process")
    rows = [(name, *(percent(document[name][part], 2) for part in _PARTS)) for name in ("without", "with", "added")]
    exporter = document["added"]["exporter"] + document["added"]["probe"]
    runs = f"{document['pairs']} alternating pairs of {document['seconds']:g} s, their middle"
    return [
        f"RabbitMQ {document['broker']}, {len(document['streams'])} streams, {runs}",
        "",
        *table(head, rows),
        "",
        f"added to the broker {percent(document['added']['broker'], 2)}: {_verdict(within=document['broker_within'])}",
        f"exporter and probe process {percent(exporter, 2)}: {_verdict(within=document['exporter_within'])}",
        *(f"not well: {line}"[:80] for line in document["failed"]),
    ]


def _verdict(*, within: bool) -> str:
    return "below 3 % of a core" if within else "NOT below 3 % of a core"


BENCH = Bench(
    name="cost",
    shows="what all continuous probes cost at their default rates",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "15", "--pairs", "1"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
