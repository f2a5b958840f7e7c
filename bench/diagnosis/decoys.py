"""False warnings and alarms of diagnosis on a healthy broker, with and without decoys."""

import argparse
import time
from contextlib import ExitStack

from bench.bench import Bench, Document, progress
from bench.diagnosis.scene import SOURCES, Scene, flat, scene
from bench.exporter.goals import Goal
from bench.tables import table
from lab.brokers import SUITES
from lab.decoys import DECOYS
from lab.node import Extra

_LOOK = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the broker (1)")
    parser.add_argument("--minutes", type=float, default=4.0, help="how long all decoys are held at once (4)")
    parser.add_argument("--source", choices=SOURCES, default="all", help="what the exporter has, see faults (all)")
    parser.add_argument("--healthy", type=float, default=2.0, help="minutes of the shop alone, before (2)")


def measure(args: argparse.Namespace) -> Document:
    """Watch the sample workload alone, then with all decoys that fit the broker at once."""
    results: list[Document] = []
    for broker in args.broker:
        fitting = [spec for spec in DECOYS.values() if broker in spec.brokers and spec.nodes <= args.nodes]
        plugins = tuple(sorted({plugin for spec in fitting for plugin in spec.extra.plugins}))
        config = "".join(dict.fromkeys(spec.extra.config for spec in fitting))
        extra = Extra(plugins=plugins, config=config)
        with scene(broker, args.nodes, extra, source=args.source) as stage, ExitStack() as stack:
            progress(f"{stage.lab.broker}, {args.nodes} nodes: the shop alone for {args.healthy:g} minutes")
            results.append(_watched(stage, args, "healthy shop", args.healthy))
            progress(f"{stage.lab.broker}: {len(fitting)} decoys for {args.minutes:g} minutes")
            for spec in fitting:
                stack.enter_context(stage.held(spec))
            results.append(_watched(stage, args, ", ".join(spec.name for spec in fitting), args.minutes))
    worst = sum(len(result["raised"]) for result in results)
    return {"results": results, "goals": [Goal("warnings and alarms over healthy things", worst, 0).as_dict()]}


def _watched(stage: Scene, args: argparse.Namespace, what: str, minutes: float) -> Document:
    raised: dict[str, str] = {}
    facts: dict[str, str] = {}
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        for finding, _ in flat(stage.findings()):
            place = facts if finding["severity"] == "info" else raised
            name = f"{finding['severity']} {finding['rule']} {finding['subject']['kind']} {finding['subject']['name']}"
            place.setdefault(name, finding["summary"])
        time.sleep(_LOOK)
    progress(f"{stage.lab.broker}: {len(raised)} raised; {'; '.join(raised)}")
    cpu = stage.exporter.get("/metrics").text
    seconds = [float(line.split()[-1]) for line in cpu.splitlines() if line.startswith("ackscope_diagnosis_duration")]
    return {
        "broker": stage.lab.broker,
        "nodes": args.nodes,
        "what": what,
        "minutes": minutes,
        "raised": raised,
        "facts": facts,
        "diagnosis_seconds": max(seconds, default=None),
    }


def lines(document: Document) -> list[str]:
    """Return a table with one row per watch, then the findings."""
    rows = [
        (
            f"{result['broker']}{' x' + str(result['nodes']) if result['nodes'] > 1 else ''}",
            f"{result['minutes']:g}",
            str(len(result["raised"])),
            str(len(result["facts"])),
            result["what"].split(",")[0] if "," not in result["what"] else f"{result['what'].count(',') + 1} decoys",
        )
        for result in document["results"]
    ]
    text = table(("", "minutes", "raised", "information", "what"), rows)
    for result in document["results"]:
        text += [f"raised: {name}: {said}" for name, said in result["raised"].items()]
        text += [f"information: {name}" for name in result["facts"]]
    return [*text, "", *(Goal(**goal).line() for goal in document["goals"])]


BENCH = Bench(
    name="decoys",
    room="diagnosis",
    shows="healthy things that look ill: what diagnosis says of them",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3", "--healthy", "0.5"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
