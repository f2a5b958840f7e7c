"""CPU cost of monitoring: ackscope, rabbitmq_exporter and no monitoring at the same time on three brokers.

The speed of the machine changes over minutes, by 10 % and more of a broker's CPU time. Monitoring adds about as much to
a small broker. Measuring all three at the same time removes this effect. Brokers of one version differ as well, so the
contenders change brokers after each stretch.
"""

import argparse
import contextlib
import time

from bench.bench import Bench, Document, add_seconds, progress
from bench.exporter import contenders
from bench.exporter.busy import busy_broker
from bench.exporter.cleaning import wait_between
from bench.exporter.contenders import NOBODY, OURS, RABBITMQ_EXPORTER, Contender
from bench.exporter.goals import Goal, between, cpu_goal, ratio
from bench.exporter.peers import HISTORY, INTERVAL, SETTLED, WHOLE
from bench.exporter.rotation import Stretches, compared
from bench.exporter.scraping import scrape, turns
from bench.tables import table
from bench.usage import Stretch
from lab.cluster import Lab

_CONTENDERS: dict[str, Contender] = {
    NOBODY: contenders.nobody,
    RABBITMQ_EXPORTER: contenders.run_rabbitmq_exporter,
    OURS: contenders.ackscope(INTERVAL),
}

_NOTE = (
    "s a minute: processor seconds of a broker; times nobody's: once what stretches and brokers differ by is taken out "
    "(least squares of the logarithms); +-: twice its standard error."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queues", type=int, default=1000, help="of each broker (default 1000)")
    parser.add_argument("--busy", type=int, default=20, help="queues with traffic (default 20)")
    parser.add_argument("--stretches", type=int, default=6, help="from 3 on noise is reported (default 6)")
    parser.add_argument(
        "--warm", type=float, default=HISTORY, help=f"seconds before the first (default {HISTORY:g}: a full history)"
    )
    add_seconds(parser, WHOLE, "each stretch; best a multiple of it")


def measure(args: argparse.Namespace) -> Document:
    """Measure stretches on three brokers of one version; the contenders rotate over the brokers."""
    stretches: list[dict[str, float]] = []
    with contextlib.ExitStack() as held:
        labs = [held.enter_context(busy_broker(args.broker, args.queues, args.busy)) for _ in _CONTENDERS]
        time.sleep(args.warm)
        for number in range(args.stretches):
            turned = [labs[(place + number) % len(labs)] for place in range(len(labs))]
            stretches.append(_stretch(dict(zip(_CONTENDERS, turned, strict=True)), args.queues, args.seconds))
            figures = ", ".join(f"{name} {seen:.3f}" for name, seen in stretches[-1].items())
            progress(f"{labs[0].broker}, stretch {number + 1}: the brokers took {figures} s a minute")
    asked = {"queues": args.queues, "busy": args.busy, "seconds": args.seconds, "warm": args.warm}
    return {"broker": labs[0].broker, **asked, "stretches": stretches, "goal": goal(stretches).as_dict()}


def _stretch(labs: dict[str, Lab], queues: int, seconds: float) -> dict[str, float]:
    """Return the CPU seconds per minute of each contender's broker."""
    pids = {name: lab.processes[0].pid for name, lab in labs.items()}
    with contextlib.ExitStack() as held:
        running = [held.enter_context(_CONTENDERS[name](lab.nodes[0], queues)) for name, lab in labs.items()]
        time.sleep(SETTLED)
        wait_between(*pids.values())
        spent = Stretch(pids)
        for _ in turns(seconds, INTERVAL):
            for each in running:
                if each.url is not None:
                    scrape(each.url)
        return spent.per_minute()


def goal(stretches: Stretches) -> Goal:
    """Return the goal: CPU time that ackscope adds to a broker, relative to rabbitmq_exporter."""
    figures = compared(stretches)
    ours, theirs = figures.times[OURS] - 1, figures.times[RABBITMQ_EXPORTER] - 1
    if figures.covariance is None:
        return cpu_goal(ratio(ours, theirs), None, None)
    squares = figures.squared(OURS, OURS), figures.squared(RABBITMQ_EXPORTER, RABBITMQ_EXPORTER)
    return cpu_goal(ratio(ours, theirs), *between(ours, theirs, squares, figures.squared(OURS, RABBITMQ_EXPORTER)))


def lines(document: Document) -> list[str]:
    """Return a row per stretch, the average added, and the goal."""
    stretches = document["stretches"]
    rows = [
        (f"stretch {number}", *(f"{each[name]:.3f}" for name in (NOBODY, RABBITMQ_EXPORTER, OURS)))
        for number, each in enumerate(stretches, 1)
    ]
    figures = compared(stretches)
    times = ("times nobody's", "1", *(f"{figures.times[name]:.3f}" for name in (RABBITMQ_EXPORTER, OURS)))
    noises = (
        "+-",
        "",
        *("-" if figures.covariance is None else f"{figures.noise(name):.3f}" for name in (RABBITMQ_EXPORTER, OURS)),
    )
    return [
        f"three brokers {document['broker']}, {document['queues']} queues each, {document['busy']} with traffic",
        f"{len(stretches)} stretches of {document['seconds']:g} s, a scrape every {INTERVAL:g} s",
        "",
        *table(("broker, s a minute", NOBODY, RABBITMQ_EXPORTER, OURS), [*rows, times, noises]),
        "",
        Goal(**document["goal"]).line(),
        "",
        _NOTE,
    ]


BENCH = Bench(
    name="at_once",
    room="exporter",
    shows="what monitoring costs a small broker, three brokers at the same time",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
