"""Minute rollups side by side with DuckDB, Polars and pandas: the same rows, the same tables, the same machine."""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.bench import Bench, Document, tell
from bench.exporter.goals import Goal, ratio
from bench.pipeline.fleet import Fleet
from bench.pipeline.workers import OURS, PEERS, Run, Worker, roll_up, working
from bench.pipeline.writing import RATE, by_hour, write_fleet, write_messages
from bench.tables import median, table
from bench.usage import MB

_LARGE = 20_000_000
"""Beyond so many messages, what leaving duplicates in would save is not measured again."""

_WARM_TIMES, _LINEAR_TIMES, _MEMORY = 3.0, 1.2, 3000
"""Goals: times as long as the fastest, times the linear one from the smallest to the largest, MB of all processes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--messages", default="1,10", help='millions, ascending; "": none (default 1,10)')
    parser.add_argument("--warm", type=int, default=2, help="warm runs of each, alternating (default 2)")
    parser.add_argument("--engines", default=",".join((OURS, *PEERS)), help="default all; ackscope must be among them")
    parser.add_argument("--queues", type=int, default=10_000, help="queues of the second part, 0: none (default 10000)")
    parser.add_argument("--hours", type=int, default=24, help="of the second part (default 24)")
    parser.add_argument("--folder", type=Path, help="where the made-up landing goes (default: a temporary folder)")


def measure(args: argparse.Namespace) -> Document:
    """Messages in every size, then queues."""
    engines = args.engines.split(",")
    sizes = [round(float(text) * 1e6) for text in args.messages.split(",") if text]
    document: Document = {"rate": RATE, "sizes": [], "queues": None}
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-", dir=args.folder) as folder:
        with ExitStack() as stack:
            workers: dict[str, Worker] = {}
            for count in sizes:
                document["sizes"].append(_messages(Path(folder), count, engines, workers, stack, args.warm))
        if args.queues:
            document["queues"] = _queues(Path(folder), args.queues, args.hours)
    document["goals"] = [goal.as_dict() for goal in _goals(document)]
    return document


# ------------------------------------------------------------ messages


def _messages(
    folder: Path, count: int, engines: Sequence[str], workers: dict[str, Worker], stack: ExitStack, warm: int
) -> dict[str, Any]:
    """One size; the first one starts the engines, and is their cold run."""
    tell(f"writing {count:,} messages")
    landing = folder / f"landing-{count}"
    size = write_messages(landing, count)
    hours = by_hour(landing)
    found: dict[str, dict[str, list[Run]]] = {name: {"cold": [], "warm": [], "without": []} for name in engines}

    def ask(name: str, kind: str, number: int) -> Run:
        tell(f"{name}: {count:,} messages, {kind}, {number + 1}")
        to = folder / name / str(count) / f"{kind}-{number}"
        asked = {"landing": str(landing), "hours": hours, "to": str(to), "distinct": kind != "without"}
        run = workers[name].ask(asked)
        tell(f"{name}: {run.wall:.1f} s, {run.cpu:.1f} s of processor, {run.peak / MB:.0f} MB, sums {run.sums()}")
        return run

    for name in engines:
        if name not in workers:
            began = time.monotonic()
            workers[name] = stack.enter_context(working(name))
            run = ask(name, "cold", 0)
            run.wall = time.monotonic() - began
            found[name]["cold"].append(run)
    for number in range(warm):
        for name in engines:
            for kind in ("warm", "without") if count <= _LARGE else ("warm",):
                found[name][kind].append(ask(name, kind, number))
    answers = {tuple(run.sums()) for each in found.values() for run in (*each["cold"], *each["warm"])}
    for path in landing.rglob("*.parquet"):
        path.unlink()
    return {
        "messages": count,
        "bytes_per_row": size / count,
        "same": len(answers) == 1,
        "engines": {name: _summary(each) for name, each in found.items()},
    }


def _summary(runs: dict[str, list[Run]]) -> dict[str, Any]:
    return {
        **{kind: median([run.wall for run in each]) for kind, each in runs.items()},
        **{f"{kind}_cpu": median([run.cpu for run in each]) for kind, each in runs.items()},
        "peak": max(run.peak for each in runs.values() for run in each),
        "listing": median([run.answer.get("listing") for run in runs["warm"]]),
    }


# ------------------------------------------------------------ queues


def _queues(folder: Path, queues: int, hours: int) -> dict[str, Any]:
    tell(f"writing {hours} hours of {queues:,} queues")
    landing = folder / "landing-queues"
    landed = write_fleet(landing, Fleet("bench", queues=queues, days=-(-hours // 24), incidents=0), hours, 60)
    tell(f"{OURS}: {queues:,} queues, {hours} hours")
    (run,), sizes = roll_up(landing, folder / OURS / "queues")
    return {
        "queues": queues,
        "hours": hours,
        "landed": landed,
        "rows": run.answer["rows"],
        "bytes": sizes,
        "wall": run.wall,
        "cpu": run.cpu,
        "peak": run.peak,
    }


# ------------------------------------------------------------ the tables


def _goals(document: Document) -> list[Goal]:
    goals = []
    for size in document["sizes"]:
        own = size["engines"][OURS]
        peers = [it for name, it in size["engines"].items() if name != OURS]
        told = {
            "warm": "warm: seconds",
            "warm_cpu": "warm: processor time",
            "without_cpu": "duplicates left in: processor time",
        }
        goals += [
            Goal(f"{size['messages'] / 1e6:g} M, {text}, times the fastest", ratio(own[kind], fastest), _WARM_TIMES)
            for kind, text in told.items()
            if (fastest := min((it[kind] for it in peers if it[kind] is not None), default=None)) is not None
        ]
    if len(document["sizes"]) > 1:
        first, last = document["sizes"][0], document["sizes"][-1]
        per = [it["engines"][OURS]["warm_cpu"] / it["messages"] for it in (first, last)]
        text = f"processor time a message, {last['messages'] / 1e6:g} M over {first['messages'] / 1e6:g} M"
        goals.append(Goal(text, ratio(per[1], per[0]), _LINEAR_TIMES))
    peaks = [it["engines"][OURS]["peak"] for it in document["sizes"]] + [(document["queues"] or {}).get("peak", 0)]
    goals.append(Goal("memory of all processes of ackscope, MB at their peak", max(peaks) / MB, _MEMORY))
    return goals


def lines(document: Document) -> list[str]:
    """A table a size, the queues, the goals."""
    text: list[str] = []
    for size in document["sizes"]:
        text += [
            (
                f"{size['messages']:,} messages, {size['bytes_per_row']:.0f} bytes each in landing; "
                f"results {'equal' if size['same'] else 'NOT EQUAL'}"
            ),
            "",
            *table(
                ("engine", "cold s", "warm s", "cpu s", "times", "undeduped cpu s", "times", "peak MB"),
                [_row(name, it, size["engines"]) for name, it in size["engines"].items()],
            ),
            "",
            *_where(size),
            "",
        ]
    if document["queues"]:
        text += [*_queue_lines(document["queues"]), ""]
    return text + [Goal(**goal).line() for goal in document["goals"]]


def _row(name: str, it: dict[str, Any], engines: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    def times(kind: str) -> str:
        quotient = ratio(it[kind], min((each[kind] for each in engines.values() if each[kind] is not None), default=0))
        return "-" if quotient is None else f"{quotient:.1f}"

    def figure(kind: str) -> str:
        return "-" if it[kind] is None else f"{it[kind]:.1f}"

    return (
        name,
        *(figure(kind) for kind in ("cold", "warm", "warm_cpu")),
        times("warm_cpu"),
        figure("without_cpu"),
        times("without_cpu"),
        f"{it['peak'] / MB:.0f}",
    )


def _where(size: dict[str, Any]) -> list[str]:
    ours = size["engines"][OURS]
    told = f"ackscope: {size['messages'] / ours['warm_cpu']:,.0f} messages a second of one core"
    if ours["without_cpu"] is not None:
        told += f"; to look for duplicates is {max(0.0, 1 - ours['without_cpu'] / ours['warm_cpu']):.0%} of it"
    return [f"{told}; to look at the files {ours['listing']:.2f} s"]


def _queue_lines(it: dict[str, Any]) -> list[str]:
    landed, size = (sum(told[index] for told in it["landed"].values()) for index in (0, 1))
    made = sum(it["rows"].values())
    rows = [
        (name, f"{told[0]:,}", f"{told[1] / max(told[0], 1):.1f}", f"{told[1] / MB:.0f}")
        for name, told in it["landed"].items()
    ] + [
        (name, f"{count:,}", f"{it['bytes'][name] / count:.1f}", f"{it['bytes'][name] / MB:.0f}")
        for name, count in it["rows"].items()
    ]
    text = (
        f"{it['queues']:,} queues, {it['hours']} hours, polled every minute: {landed:,} rows landed "
        f"({size / MB:.0f} MB), {made:,} rollup rows in {it['wall']:.0f} s ({it['cpu']:.0f} s of processor), cold; "
        f"{landed / it['cpu']:,.0f} landing rows a second of one core; {it['peak'] / MB:.0f} MB at the peak"
    )
    return [
        text,
        "",
        *table(("table", "rows", "bytes a row", "MB"), rows),
    ]


BENCH = Bench(
    name="throughput",
    room="pipeline",
    shows="minute rollups beside DuckDB, Polars and pandas over the same landing files",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--messages", "1,5", "--warm", "1", "--queues", "2000", "--hours", "4"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
