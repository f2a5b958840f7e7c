"""Minute rollups compared with DuckDB, Polars and pandas: same rows, same tables, same machine."""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ackscope.tables import QUEUE_SAMPLES, QUEUES_1M
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal, ratio
from bench.pipeline.fleet import Fleet
from bench.pipeline.queue_work import sums, windows
from bench.pipeline.workers import MESSAGES, OURS, PEERS, QUEUES, Engines, Run, roll_up
from bench.pipeline.writing import RATE, by_hour, write_fleet, write_messages
from bench.tables import median, table
from bench.usage import MB

# Above this many messages, the run without deduplication is skipped.
_LARGE = 20_000_000

# Goals: multiple of the fastest engine, growth from the smallest to the largest size, MB of all processes.
_WARM_TIMES, _LINEAR_TIMES, _MEMORY = 3.0, 1.2, 3000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--messages", default="1,10", help='millions, ascending; "": none (default 1,10)')
    parser.add_argument("--warm", type=int, default=2, help="warm runs of each, alternating (default 2)")
    parser.add_argument("--engines", default=",".join((OURS, *PEERS)), help="default all; ackscope must be among them")
    parser.add_argument("--queues", type=int, default=10_000, help="queues of the second part, 0: none (default 10000)")
    parser.add_argument("--hours", type=int, default=24, help="of the second part (default 24)")
    parser.add_argument("--folder", type=Path, help="where the made-up landing goes (default: a temporary folder)")


def measure(args: argparse.Namespace) -> Document:
    """Measure messages in every size, then queues."""
    engines = args.engines.split(",")
    sizes = [round(float(text) * 1e6) for text in args.messages.split(",") if text]
    document: Document = {"rate": RATE, "sizes": [], "queues": None}
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-", dir=args.folder) as name:
        folder = Path(name)
        with ExitStack() as stack:
            messages = Engines(engines, MESSAGES, folder, stack)
            document["sizes"] = [_messages(folder, count, messages, args.warm) for count in sizes]
        if args.queues:
            with ExitStack() as stack:
                queues = Engines(engines, QUEUES, folder, stack)
                document["queues"] = _queues(folder, args.queues, args.hours, queues, args.warm)
    document["goals"] = [goal.as_dict() for goal in _goals(document)]
    return document


# ------------------------------------------------------------ messages


def _messages(folder: Path, count: int, engines: Engines, warm: int) -> dict[str, Any]:
    """Measure one size; the first one starts the engines, and is their cold run."""
    progress(f"writing {count:,} messages")
    landing = folder / f"landing-{count}"
    size = write_messages(landing, count)
    request = {"landing": str(landing), "hours": by_hour(landing)}
    found = engines.compare(
        f"{count:,} messages",
        lambda kind: request | {"distinct": kind != "without"},
        lambda run: tuple(run.answer[name] for name in ("messages", "counted", "nanoseconds")),
        warm,
        ("warm", "without") if count <= _LARGE else ("warm",),
    )
    for path in landing.rglob("*.parquet"):
        path.unlink()
    return {"messages": count, "bytes_per_row": size / count} | _compared(found)


def _compared(found: dict[str, dict[str, list[Run]]]) -> dict[str, Any]:
    answers = {run.sums for each in found.values() for run in (*each["cold"], *each["warm"])}
    engines = {name: _summary(each) for name, each in found.items()}
    return {"same": len(answers) == 1, "sums": min(answers), "engines": engines}


def _summary(runs: dict[str, list[Run]]) -> dict[str, Any]:
    labels = {kind: runs.get(kind, []) for kind in ("cold", "warm", "without")}
    return {
        **{kind: median([run.wall for run in each]) for kind, each in labels.items()},
        **{f"{kind}_cpu": median([run.cpu for run in each]) for kind, each in labels.items()},
        "peak": max(run.peak for each in labels.values() for run in each),
        "listing": median([run.answer.get("listing") for run in runs["warm"]]),
    }


# ------------------------------------------------------------ queues


def _queues(folder: Path, queues: int, hours: int, engines: Engines, warm: int) -> dict[str, Any]:
    """Measure all tables with ackscope, then the table of queues with all engines."""
    progress(f"writing {hours} hours of {queues:,} queues")
    landing = folder / "landing-queues"
    landed = write_fleet(landing, Fleet("bench", queues=queues, days=-(-hours // 24), incidents=0), hours, 60)
    progress(f"{OURS}: {queues:,} queues, {hours} hours")
    (run,), sizes = roll_up(landing, folder / OURS / "queues")
    request = {"landing": str(landing), "windows": windows(landing), "tables": [QUEUE_SAMPLES.name], "distinct": True}
    found = engines.compare(
        f"{queues:,} queues, {hours} hours",
        lambda _: request,
        lambda run: sums(run.answer["files"][QUEUES_1M.name]),
        warm,
    )
    return _compared(found) | {
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
        labels = {
            "warm": "warm: seconds",
            "warm_cpu": "warm: processor time",
            "without_cpu": "duplicates left in: processor time",
        }
        many = f"{size['messages'] / 1e6:g} M"
        goals += _times_the_fastest(
            size["engines"], {kind: f"{many}, {text}, times the fastest" for kind, text in labels.items()}
        )
    if len(document["sizes"]) > 1:
        first, last = document["sizes"][0], document["sizes"][-1]
        per = [it["engines"][OURS]["warm_cpu"] / it["messages"] for it in (first, last)]
        text = f"processor time a message, {last['messages'] / 1e6:g} M over {first['messages'] / 1e6:g} M"
        goals.append(Goal(text, ratio(per[1], per[0]), _LINEAR_TIMES))
    peaks = [it["engines"][OURS]["peak"] for it in document["sizes"]]
    if queues := document["queues"]:
        text = "queues, warm: processor time, times the fastest"
        goals += _times_the_fastest(queues["engines"], {"warm_cpu": text})
        peaks += [queues["peak"], queues["engines"][OURS]["peak"]]
    goals.append(Goal("memory of all processes of ackscope, MB at their peak", max(peaks, default=0) / MB, _MEMORY))
    return goals


def _times_the_fastest(engines: dict[str, dict[str, Any]], labels: dict[str, str]) -> list[Goal]:
    """Return a goal for each kind of run for which a peer has a figure."""
    peers = [it for name, it in engines.items() if name != OURS]
    return [
        Goal(text, ratio(engines[OURS][kind], fastest), _WARM_TIMES)
        for kind, text in labels.items()
        if (fastest := min((it[kind] for it in peers if it[kind] is not None), default=None)) is not None
    ]


def lines(document: Document) -> list[str]:
    """Return a table per size, the table of queues, and the goals."""
    text: list[str] = []
    for size in document["sizes"]:
        text += [
            (
                f"{size['messages']:,} messages, {size['bytes_per_row']:.0f} bytes each in landing; "
                f"results {_equal(size)}"
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
    return (
        name,
        *(_figure(it[kind]) for kind in ("cold", "warm", "warm_cpu")),
        _times(it, engines, "warm_cpu"),
        _figure(it["without_cpu"]),
        _times(it, engines, "without_cpu"),
        f"{it['peak'] / MB:.0f}",
    )


def _times(it: dict[str, Any], engines: dict[str, dict[str, Any]], kind: str) -> str:
    return _figure(ratio(it[kind], min((each[kind] for each in engines.values() if each[kind] is not None), default=0)))


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _where(size: dict[str, Any]) -> list[str]:
    ours = size["engines"][OURS]
    labels = f"ackscope: {size['messages'] / ours['warm_cpu']:,.0f} messages a second of one core"
    if ours["without_cpu"] is not None:
        labels += f"; to look for duplicates is {max(0.0, 1 - ours['without_cpu'] / ours['warm_cpu']):.0%} of it"
    return [f"{labels}; to look at the files {ours['listing']:.2f} s"]


def _queue_lines(it: dict[str, Any]) -> list[str]:
    landed, size = (sum(labels[index] for labels in it["landed"].values()) for index in (0, 1))
    made = sum(it["rows"].values())
    rows = [
        (name, f"{labels[0]:,}", f"{labels[1] / max(labels[0], 1):.1f}", f"{labels[1] / MB:.0f}")
        for name, labels in it["landed"].items()
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
        "",
        f"{QUEUES_1M.name} alone, warm; results {_equal(it)}",
        "",
        *table(
            ("queues: engine", "warm s", "cpu s", "times", "peak MB"),
            [_queue_row(name, each, it["engines"]) for name, each in it["engines"].items()],
        ),
    ]


def _queue_row(name: str, it: dict[str, Any], engines: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    seconds = (_figure(it[kind]) for kind in ("warm", "warm_cpu"))
    return name, *seconds, _times(it, engines, "warm_cpu"), f"{it['peak'] / MB:.0f}"


def _equal(it: dict[str, Any]) -> str:
    return "equal" if it["same"] else "NOT EQUAL"


BENCH = Bench(
    name="throughput",
    room="pipeline",
    shows="minute rollups compared with DuckDB, Polars and pandas over the same landing files",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--messages", "1,5", "--warm", "1", "--queues", "2000", "--hours", "4"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
