"""Cost of monitoring for broker and exporter, compared with peers on one broker in alternating stretches."""

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, add_seconds, progress
from bench.exporter import contenders
from bench.exporter.busy import busy_broker
from bench.exporter.cleaning import CLEANING, wait_between
from bench.exporter.contenders import NOBODY, OURS, RABBITMQ_EXPORTER, Contender, details_seen
from bench.exporter.goals import Goal, noise, peer_goals
from bench.exporter.scraping import ScrapedPage, by_label, scrape, turns
from bench.tables import median, table
from bench.usage import MB, Stretch, usage
from lab.cluster import Lab

INTERVAL = 15.0
"""Seconds between scrapes, as in production; ackscope polls at the same interval."""

STRETCH = CLEANING
"""Seconds of a stretch. With other lengths, stretches differ by one collection of the broker, which costs more than
what is measured."""

HISTORY = 605.0
"""Seconds of history that a broker keeps by default; lists with statistics cost less until it is full."""

WHOLE = 600.0
"""Seconds that contain four readings of the queues of an idle broker, every 150 s, and five collections. At 1,000
queues, one more or less of either is at least 20 % of the cost of ackscope."""

SETTLED = 8.0
"""Seconds after the start of a contender before the measurement."""

_PLUGIN: dict[str, Contender] = {
    "per-object": contenders.per_object,
    "detailed": contenders.detailed,
}

_LONG = (NOBODY, OURS)
"""Contenders whose costs differ little, so that noise matters most."""

_MORE_SCRAPES = {OURS: 20}
"""Additional scrapes after the stretch, for contenders with cheap scrapes, for a better median."""


@dataclass(slots=True)
class _Run:
    """Measurements of one contender, one value per stretch; `broker` is by number of the round."""

    broker: dict[int, float] = field(default_factory=dict)
    cpu: list[float] = field(default_factory=list)
    scrapes: list[float] = field(default_factory=list)
    views: list[float] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    rss: list[int] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    oldest: list[float] = field(default_factory=list)
    page: ScrapedPage | None = None
    detailed: float | None = None
    failed: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["4.3", "3.10"], help="versions (default 4.3 3.10)")
    parser.add_argument("--queues", type=int, nargs="+", default=[1000, 10_000], help="sizes (default 1000 10000)")
    parser.add_argument(
        "--rounds", type=int, default=1, help="stretches of each; from 3 on noise is reported (default 1)"
    )
    parser.add_argument("--busy", type=int, default=200, help="queues with traffic (default 200)")
    parser.add_argument("--plugin", nargs="*", choices=_PLUGIN, default=list(_PLUGIN), help="its ways (default both)")
    parser.add_argument("--budget", type=float, help="poll.budget of ackscope, cores (default: its own)")
    parser.add_argument(
        "--warm", type=float, default=0.0, help=f"seconds before the first; {HISTORY:g} fill its history"
    )
    add_seconds(parser, STRETCH, "each stretch; best a multiple of it")
    parser.add_argument(
        "--long",
        type=float,
        metavar="SECONDS",
        help=f"stretches of ackscope and of nobody (default: --seconds); {WHOLE:g} hold whole readings and cleanings",
    )


def measure(args: argparse.Namespace) -> Document:
    """Measure all contenders on one broker, for each version and size."""
    results = []
    for version in args.broker:
        for queues in args.queues:
            with busy_broker(version, queues, args.busy) as lab:
                time.sleep(args.warm)
                results.append(_compare(lab, queues, args))
    parameters = {"interval": INTERVAL, "budget": args.budget, "warm": args.warm, "long": args.long}
    return {"seconds": args.seconds, "rounds": args.rounds, "busy": args.busy, **parameters, "results": results}


def _compare(lab: Lab, queues: int, args: argparse.Namespace) -> Document:
    runners: dict[str, Contender] = {
        NOBODY: contenders.nobody,
        RABBITMQ_EXPORTER: contenders.run_rabbitmq_exporter,
        **{name: way for name, way in _PLUGIN.items() if name in args.plugin},
        OURS: contenders.ackscope(INTERVAL, args.budget),
    }
    runs = {name: _Run() for name in runners}
    long = args.long or args.seconds
    for number in range(args.rounds):
        for name, contender in runners.items():
            progress(f"{lab.broker}, {queues} queues, {name}, {number + 1} of {args.rounds}")
            try:
                seconds = long if name in _LONG else args.seconds
                _stretch(lab, queues, number, contender, seconds, runs[name], _MORE_SCRAPES.get(name, 0))
            except BrokerError as error:
                # A contender that cannot serve this size is a result; measure the others.
                runs[name].failed = str(error)
    if args.rounds > 1:
        # Once more without monitoring, so that every round has such a stretch before and after it.
        _stretch(lab, queues, args.rounds, contenders.nobody, long, runs[NOBODY])
    shown = {name: _summary(run, runs[NOBODY]) for name, run in runs.items()}
    document = {"broker": lab.broker, "queues": queues, "contenders": shown}
    return {**document, "goals": [goal.as_dict() for goal in peer_goals(shown, queues, INTERVAL)]}


def _stretch(
    lab: Lab, queues: int, number: int, contender: Contender, seconds: float, run: _Run, more: int = 0
) -> None:
    with contender(lab.nodes[0], queues) as running:
        time.sleep(SETTLED)
        broker = lab.processes[0].pid
        wait_between(broker)
        spent = Stretch({"broker": broker, "exporter": running.pid})
        pages = list(_every(running.url, seconds))
        minute = spent.per_minute()
        run.broker[number] = minute["broker"]
        progress(f"the broker took {minute['broker']:.3f} s a minute")
        if running.url is None:
            return
        if running.full_view is not None:
            run.views.append(running.full_view)
        if running.totals_after is not None:
            run.totals.append(running.totals_after)
        if running.pid is not None:
            seen = usage(running.pid)
            run.cpu.append(minute["exporter"])
            run.rss.append(seen.rss)
            run.peak.append(seen.peak)
        run.oldest += oldest(pages)
        run.scrapes += [page.seconds for _, page in pages]
        run.scrapes += [scrape(running.url).seconds for _ in range(more)]
        run.page = pages[-1][1]
        run.detailed = details_seen(run.page.text) / queues if running.totals_after is not None else None


def _every(url: str | None, seconds: float) -> Iterator[tuple[float, ScrapedPage]]:
    """Scrape at each turn of the stretch; yield the time and the page."""
    for at in turns(seconds, INTERVAL):
        if url is not None:
            yield at, scrape(url)


def oldest(pages: list[tuple[float, ScrapedPage]]) -> list[float]:
    """Return the ages of the totals, in effective poll intervals.

    These are the ages at each scrape, and the age just before each new reading. The time of a reading is the time of
    the scrape minus the age that it shows.
    """
    ages, moments = [], []
    for at, page in pages:
        age = by_label(page.text, "ackscope_poll_age_seconds", "family").get("queues")
        if age is None:
            continue
        force = by_label(page.text, "ackscope_poll_interval_seconds", "family").get("queues") or INTERVAL
        ages.append(age / force)
        moments.append((at - age, force))
    between = [(later - earlier) / force for (earlier, _), (later, force) in itertools.pairwise(moments)]
    return [*ages, *between]


def _summary(run: _Run, alone: _Run) -> dict[str, Any]:
    added = [seen - quiet for number, seen in run.broker.items() if (quiet := _quiet(alone, number)) is not None]
    page = run.page
    return {
        "failed": run.failed,
        "broker_cpu": median(list(run.broker.values())),
        "broker_cpus": list(run.broker.values()),
        "added_cpu": median(added),
        "added_cpus": added,
        "full_view": median(run.views),
        "totals_after": median(run.totals),
        "detailed": run.detailed,
        "scrape": median(run.scrapes),
        "scrapes": len(run.scrapes),
        "exporter_cpu": median(run.cpu),
        "rss": max(run.rss, default=None),
        "peak": max(run.peak, default=None),
        "oldest_totals": max(run.oldest, default=None),
        "series": page.series if page else None,
        "bytes": len(page.text) if page else None,
        "sent": page.sent if page else None,
    }


def _quiet(alone: _Run, number: int) -> float | None:
    """Return the CPU time without monitoring: before a round and, if measured, after it."""
    around = [alone.broker[place] for place in (number, number + 1) if place in alone.broker]
    return sum(around) / len(around) if around else None


def lines(document: Document) -> list[str]:
    """Return a table for each version and size, with its goals."""
    stretches = f"{document['rounds']} alternating stretches of {document['seconds']:g} s"
    every = f"a scrape every {document['interval']:g} s"
    text = [f"{document['busy']} queues with traffic; {stretches}, {every}", ""]
    if document.get("long") is not None:
        text[1:1] = [f"ackscope and nobody in stretches of {document['long']:g} s"]
    if document.get("budget") is not None:
        text[1:1] = [f"ackscope with a budget of {document['budget']:g} of a core"]
    for result in document["results"]:
        text += [f"RabbitMQ {result['broker']}, {result['queues']} queues", "", *_table(result), ""]
        text += [Goal(**goal).line() for goal in result["goals"]] + [""]
    note = (
        "broker: processor seconds a minute above those with nobody monitoring; +-: twice its standard error, from 3 "
        "rounds on; view: all objects seen once, from the start; scrape: median seconds, gzip as Prometheus asks; "
        "CPU: of the exporter, seconds a minute; MB RSS: most; page: MB."
    )
    return [*text, note]


def _table(result: Document) -> list[str]:
    head = ("", "broker", "+-", "view s", "scrape", "CPU", "MB RSS", "series", "page")
    rows = []
    for name, each in result["contenders"].items():
        if name == NOBODY or each["failed"] is not None:
            continue
        rows.append(
            (
                name,
                _figure(each["added_cpu"]),
                _figure(noise(each["added_cpus"])),
                _figure(each["full_view"]),
                _figure(each["scrape"], 1, 4),
                _figure(each["exporter_cpu"]),
                _figure(each["peak"], 1 / MB, 0),
                _figure(each["series"], 1, 0),
                _figure(each["bytes"], 1 / MB, 1),
            )
        )
    quiet = result["contenders"][NOBODY]["broker_cpu"]
    failed = [f"{name}: {each['failed']}" for name, each in result["contenders"].items() if each["failed"] is not None]
    return [*table(head, rows), *failed, f"the broker with nobody monitoring: {_figure(quiet)} s a minute"]


def _figure(value: float | None, factor: float = 1.0, digits: int = 2) -> str:
    return "-" if value is None else f"{value * factor:.{digits}f}"


BENCH = Bench(
    name="peers",
    room="exporter",
    shows="beside rabbitmq_exporter and the official plugin, on one broker",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3", "--queues", "10000"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
