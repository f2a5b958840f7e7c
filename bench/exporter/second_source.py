"""Broker time of the Prometheus endpoints as ackscope's only source, beside Prometheus that scrapes all objects."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.bench import Bench, Document, add_seconds, progress
from bench.exporter.busy import busy_broker
from bench.exporter.contenders import NOBODY, OURS, Contender, Running, nobody, per_object, totals_seen
from bench.exporter.goals import Goal
from bench.exporter.scraping import scrape, turns
from bench.exporting import exporting_cluster, wait_for
from bench.tables import median, table
from bench.usage import Stretch
from lab.cluster import Lab
from lab.node import LabNode

INTERVAL = 15.0
"""Seconds between two scrapes of the plugin, and shortest time between two readings of ackscope."""

STRETCH = 60.0
_SHARE = 0.5
_SEEN_WITHIN, _SETTLED = 120.0, 45.0
_PER_OBJECT = "per-object"


@contextmanager
def second_source(node: LabNode, queues: int) -> Iterator[Running]:
    """Run ackscope with nothing but the endpoint of this node."""
    root = {"poll": {"interval": INTERVAL}, "landing": {}}
    with exporting_cluster({"prometheus": {"urls": [node.prometheus]}}, root) as exporter:
        url = f"{exporter.url}/metrics"
        wait_for(lambda: totals_seen(scrape(url).text) >= queues, "all queues in ackscope", _SEEN_WITHIN)
        # Until the cost of a reading is known, as in normal operation.
        time.sleep(_SETTLED)
        yield Running(url, exporter.process.pid, None)


_CONTENDERS: dict[str, Contender] = {NOBODY: nobody, _PER_OBJECT: per_object, OURS: second_source}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["4.3"], help="versions (default 4.3)")
    parser.add_argument("--queues", type=int, nargs="+", default=[10_000], help="sizes (default 10000)")
    parser.add_argument("--rounds", type=int, default=2, help="stretches of each (default 2)")
    parser.add_argument("--busy", type=int, default=200, help="queues with traffic (default 200)")
    add_seconds(parser, STRETCH, "each stretch")


def measure(args: argparse.Namespace) -> Document:
    """Measure the broker's processor time in alternating stretches, for each version and size."""
    results = []
    for version in args.broker:
        for queues in args.queues:
            with busy_broker(version, queues, args.busy) as lab:
                results.append(_compare(lab, queues, args))
    return {"seconds": args.seconds, "rounds": args.rounds, "busy": args.busy, "results": results}


def _compare(lab: Lab, queues: int, args: argparse.Namespace) -> Document:
    spent: dict[str, list[float]] = {name: [] for name in _CONTENDERS}
    exporter: list[float] = []
    for number in range(args.rounds):
        for name, contender in _CONTENDERS.items():
            progress(f"{lab.broker}, {queues} queues, {name}, {number + 1} of {args.rounds}")
            with contender(lab.nodes[0], queues) as running:
                stretch = Stretch({"broker": lab.processes[0].pid, "exporter": running.pid})
                for _ in turns(args.seconds, INTERVAL):
                    if running.url is not None:
                        scrape(running.url)
                minute = stretch.per_minute()
            spent[name].append(minute["broker"])
            if name == OURS:
                exporter.append(minute["exporter"])
            progress(f"the broker took {minute['broker']:.3f} s a minute")
    quiet = median(spent[NOBODY]) or 0.0
    added = {name: (median(spent[name]) or 0.0) - quiet for name in (_PER_OBJECT, OURS)}
    share = added[OURS] / added[_PER_OBJECT] if added[_PER_OBJECT] > 0 else None
    goal = Goal(f"broker time beside scraping all objects, {queues} queues", share, _SHARE)
    return {
        "broker": lab.broker,
        "queues": queues,
        "per_minute": spent,
        "added": added,
        "exporter": median(exporter),
        "goals": [goal.as_dict()],
    }


def lines(document: Document) -> list[str]:
    """Return the table and the goals."""
    rows = [
        (
            result["broker"],
            str(result["queues"]),
            name,
            f"{median(result['per_minute'][name]) or 0:.2f}",
            f"{result['added'][name]:.2f}" if name in result["added"] else "-",
        )
        for result in document["results"]
        for name in result["per_minute"]
    ]
    goals = [Goal(**goal).line() for result in document["results"] for goal in result["goals"]]
    return [*table(("broker", "queues", "", "broker s/min", "added"), rows), "", *goals]


BENCH = Bench(
    name="second_source",
    room="exporter",
    shows="broker time of the Prometheus endpoints as the only source, beside scraping all objects",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--queues", "1000", "--rounds", "1", "--seconds", "30"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
